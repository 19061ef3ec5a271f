// What may pass through a node's network namespace, as a table of nftables. Nothing passes but what
// the table names: traffic between the parts of one job, with the addresses that these parts have.
// RuleBook knows which jobs are on the node and says each change as one transaction for
// libnftables; it does nothing itself, so that a test can read what it says.
//
// A job with a profile has a chain of its own for what it may begin (`out_LINK`) and, if other jobs
// may connect to it, one for that (`in_LINK`). What has begun goes on by its entry in the kernel's
// table of connections, which bears the number of the job's link; so an entry that a job has left
// behind lets nothing pass to the next one with its IPv4 address. Traffic between the parts of one
// job has no entries.
//
// All that is written here comes from numbers: names of profiles and services do not become rules.
//
// A part of a job on another node is not trusted to be what it says it is: both nodes check the
// pair of addresses, so a node on which a job has already ended refuses what the rest of that job
// sends.
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

// Changes the packet filter of one network namespace by libnftables. A text of several commands is
// one transaction: all of it holds afterwards, or nothing of it.
class Filter {
 public:
  // The filter of the namespace in which the thread is now.
  static Result<Filter> open();

  // The error has the first line of what libnftables says.
  Result<void> run(const std::string& commands);
  // The packets that the counter of a link's element has counted; the set has interfaces' names.
  Result<std::uint64_t> packets_of(const std::string& table, const std::string& set,
                                   const std::string& link);
  // The packets of everything that is named and counted in what a command lists: counters, or
  // elements of a set of names.
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

// What a job may begin to talk to beside its own parts, and who may begin to talk to it.
struct Reach {
  std::vector<NetworkRange> resolvers;  // by the way out, at their ports
  std::vector<NetworkRange> ranges;     // by the way out, but never what kNeverReached has
  bool internet = false;                // by the way out
  struct Group {
    std::uint32_t group = 0;
    PortRange ports;
  };
  std::vector<Group> to, from;
  [[nodiscard]] bool leaves() const { return internet || !resolvers.empty() || !ranges.empty(); }
  [[nodiscard]] bool any() const { return leaves() || !to.empty() || !from.empty(); }
};

// One attempt on this node, and the parts that it may talk to: those on other nodes, and other
// components of a heterogeneous job here.
struct Member {
  std::string link;  // name of the node's end of the attempt's link
  Part part;
  std::vector<Part> peers;
  Reach reach{};
};

// The prefix of the links' names; no other link of the namespace begins so.
inline constexpr std::string_view kJobLinks = "j";
inline constexpr std::string_view kTable = "inet gantry";
// The set that counts, for each link, what was refused or dropped.
inline constexpr std::string_view kDeniedOf = "denied_of";
inline constexpr std::string_view kWayLink = "way";  // the node's link to its machine: way_out.h

class RuleBook {
 public:
  // `node`: the number of this node, whose addresses no other node's packets have. `guarded`:
  // addresses of machines of the cluster, which no job reaches by a way out.
  explicit RuleBook(Blocks blocks, std::uint32_t node = 0, std::vector<NetworkRange> guarded = {})
      : blocks_(blocks), node_(node), guarded_(std::move(guarded)) {}

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
  [[nodiscard]] std::string chains_of(const proto::AttemptKey& key, const Member& member) const;
  [[nodiscard]] std::string sets_of_ranges() const;
  [[nodiscard]] std::string chain_from_nodes() const;

  Blocks blocks_;
  std::uint32_t node_;
  std::vector<NetworkRange> guarded_;
  bool reaching_ = false;  // whether any member has ever had a reach: then connections are tracked
  std::map<proto::AttemptKey, Member> members_;
  Elements elements_;
};

// Which name servers the jobs of a node may ask.

inline constexpr std::uint16_t kResolverPort = 53;
inline constexpr std::size_t kMostResolvers = 3;  // more are not asked by the C library

// Those that the text of a resolv.conf names and that another machine than this one can be; a
// server on the machine's loopback is none.
std::vector<NetworkRange> resolvers_of(std::string_view resolv_conf);

// The configured ones; or those of /etc/resolv.conf, or else of the file that systemd-resolved
// keeps behind its own server.
std::vector<NetworkRange> resolvers_here(const std::vector<std::string>& configured);

}  // namespace gantry::network
