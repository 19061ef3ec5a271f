// What may pass through a node's network namespace, as a table of nftables. Nothing passes but what
// the table names: traffic between the parts of one job, with the addresses that these parts have.
// RuleBook knows which jobs are on the node and returns each change as one transaction for
// libnftables; it executes nothing, so that a test can read the text.
//
// A job with a profile has its own chain for connections that it may open (`out_LINK`) and, if
// other jobs may connect to it, one for those (`in_LINK`). Open connections continue through their
// entries in the kernel's connection table, which are marked with the number of the job's link; so
// an entry left by an ended job lets nothing pass to the next one with its IPv4 address. Traffic
// between the parts of one job has no entries.
//
// Rules are made only from numbers: names of profiles and services do not become part of rules.
//
// Both nodes check the pair of addresses of each packet between parts of a job, so a node on which
// a job has already ended refuses what the rest of that job sends.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/proto/attempt.h"
#include "common/result.h"
#include "common/text/network_range.h"
#include "noded/network/address.h"

struct nft_ctx;

namespace gantry::network {

// Changes the packet filter of one network namespace with libnftables. A text with several commands
// is one transaction: either all of it takes effect, or nothing.
class Filter {
 public:
  // The filter of the thread's present namespace.
  static Result<Filter> open();

  // The error has the first line of libnftables' message.
  Result<void> run(const std::string& commands);
  // The packets counted by the element for a link; the set contains names of interfaces.
  Result<std::uint64_t> packets_of(const std::string& table, const std::string& set,
                                   const std::string& link);
  // The packets of all counters, or elements of a set of names, in the output of a list command.
  Result<std::map<std::string, std::uint64_t>> counters(const std::string& command);
  // The table as JSON, with its counters and the elements of its sets.
  Result<std::string> list(const std::string& table);

 private:
  struct CloseContext {
    void operator()(nft_ctx* context) const;
  };
  explicit Filter(nft_ctx* context) : context_(context) {}
  std::unique_ptr<nft_ctx, CloseContext> context_;
};

// To whom a job may open connections besides its own parts, and who may connect to it.
struct Reach {
  std::vector<NetworkRange> resolvers;  // through the way out, at their ports
  std::vector<NetworkRange> ranges;     // through the way out, but never to kNeverReached
  bool internet = false;                // through the way out
  struct Group {
    std::uint32_t group = 0;
    PortRange ports;
  };
  std::vector<Group> to, from;
  [[nodiscard]] bool leaves() const { return internet || !resolvers.empty() || !ranges.empty(); }
  [[nodiscard]] bool any() const { return leaves() || !to.empty() || !from.empty(); }
};

// One attempt on this node, and the parts with which it may communicate: those on other nodes, and
// other components of a heterogeneous job here.
struct Member {
  std::string link;  // name of the node's end of the attempt's link
  Part part;
  std::vector<Part> peers;
  Reach reach{};
};

// The prefix of these links' names; other links of the namespace have other prefixes.
inline constexpr std::string_view kJobLinks = "j";
inline constexpr std::string_view kTable = "inet gantry";
// The set that counts refused and dropped packets for each link.
inline constexpr std::string_view kDeniedOf = "denied_of";
inline constexpr std::string_view kWayLink = "way";  // the node's link to its machine: way_out.h

class RuleBook {
 public:
  // `node`: the number of this node, whose addresses must not appear in packets of other nodes.
  // `guarded`: addresses of the cluster's machines, which no job reaches through a way out.
  explicit RuleBook(Blocks blocks, std::uint32_t node = 0, std::vector<NetworkRange> guarded = {})
      : blocks_(blocks), node_(node), guarded_(std::move(guarded)) {}

  // The whole table with every member, which replaces an existing table.
  [[nodiscard]] std::string whole() const;
  // The change that adds or removes a member; "" if there is nothing to do. Adding a member again
  // replaces the earlier one.
  std::string add(const proto::AttemptKey& key, Member member);
  std::string remove(const proto::AttemptKey& key);

  [[nodiscard]] const std::map<proto::AttemptKey, Member>& members() const { return members_; }

 private:
  // The elements of each set of the table, with the number of members that need each.
  using Elements = std::map<std::pair<std::string, std::string>, int>;
  [[nodiscard]] Elements elements_of(const Member& member) const;
  [[nodiscard]] std::string chains_of(const proto::AttemptKey& key, const Member& member) const;
  [[nodiscard]] std::string sets_of_ranges() const;
  [[nodiscard]] std::string chain_from_nodes() const;

  Blocks blocks_;
  std::uint32_t node_;
  std::vector<NetworkRange> guarded_;
  bool reaching_ = false;  // true once a member has had a reach: then connections are tracked
  std::map<proto::AttemptKey, Member> members_;
  Elements elements_;
};

// Chooses the name servers that the jobs of a node may use.

inline constexpr std::uint16_t kResolverPort = 53;
inline constexpr std::size_t kMostResolvers = 3;  // the C library does not use more

// The name servers in the text of a resolv.conf that can be on another machine; servers on the
// machine's loopback are left out.
std::vector<NetworkRange> resolvers_of(std::string_view resolv_conf);

// The configured ones; or those of /etc/resolv.conf, or else of the file in which systemd-resolved
// lists the real servers.
std::vector<NetworkRange> resolvers_here(const std::vector<std::string>& configured);

}  // namespace gantry::network
