// What may pass through a node's network namespace, as a table of nftables. Nothing passes but what
// the table names: traffic between the parts of one job, with the addresses that these parts have.
// RuleBook knows which jobs are on the node and says each change as one transaction for
// libnftables; it does nothing itself, so that a test can read what it says.
//
// A part of a job on another node is not trusted to be what it says it is: both nodes check the
// pair of addresses, so a node on which a job has already ended refuses what the rest of that job
// sends.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/proto/attempt.h"
#include "noded/network/address.h"

namespace gantry::network {

// One attempt on this node, and the parts that it may talk to: those on other nodes, and other
// components of a heterogeneous job here.
struct Member {
  std::string link;  // name of the node's end of the attempt's link
  Part part;
  std::vector<Part> peers;
};

// The prefix of the links' names; no other link of the namespace begins so.
inline constexpr std::string_view kJobLinks = "j";
inline constexpr std::string_view kTable = "inet gantry";

class RuleBook {
 public:
  explicit RuleBook(Blocks blocks) : blocks_(blocks) {}

  // The whole table with every member, which takes the place of a table that is there.
  [[nodiscard]] std::string whole() const;
  // The change that adds or removes a member; "" if there is nothing to do. A member that is added
  // again takes the place of the earlier one.
  std::string add(const proto::AttemptKey& key, Member member);
  std::string remove(const proto::AttemptKey& key);

  [[nodiscard]] const std::map<proto::AttemptKey, Member>& members() const { return members_; }

 private:
  // The elements of each set of the table, with the number of members that need them.
  using Elements = std::map<std::pair<std::string, std::string>, int>;
  [[nodiscard]] Elements elements_of(const Member& member) const;

  Blocks blocks_;
  std::map<proto::AttemptKey, Member> members_;
  Elements elements_;
};

}  // namespace gantry::network
