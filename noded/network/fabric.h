// The network of the jobs on one node: a namespace of the node with a link to each job and one to
// the other nodes, and a namespace for each attempt.
//
//   job's namespace            node's namespace                     other nodes
//   eth0 ──────────────────── j7   ┐
//   address/128, address/32        ├─ forward: rules.h ── nodes ── nodes_link.h
//   eth0 ──────────────────── j8   ┘
//
// Traffic to the outside that a profile allows goes through way_out.h.
//
// There is no ARP or neighbour discovery on the links, because both ends have permanent neighbour
// entries; so a job can neither answer for another one nor flood others with requests. There is no
// bridge. In the machine's own namespace nodes_link.h makes the only changes.
//
// Namespaces with their links are made in advance (space.h), so that an attempt gets no more
// than its addresses and rules; and what ended attempts leave is removed when nobody waits for it.
//
// All that a Fabric makes is bound to files in its directory and outlives its process: the next
// Fabric of the directory adopts what its list of attempts names, and removes the rest. Needs root.
// Calls take milliseconds and are made by one thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/fd.h"
#include "common/proto/job_network.h"
#include "noded/network/netlink.h"
#include "noded/network/nodes_link.h"
#include "noded/network/rules.h"
#include "noded/network/space.h"
#include "noded/network/way_out.h"

namespace gantry::network {

struct FabricOptions {
  std::string directory;  // absolute, exists, writable for root only
  Blocks blocks;
  std::uint32_t node = 0;
  Underlay underlay;      // where other nodes reach this one
  std::uint32_t vni = 0;  // number of the cluster, below 2^24
  // Addresses of the cluster's machines, which no job reaches through the way out; and the name
  // servers for jobs.
  std::vector<NetworkRange> guarded{}, resolvers{};
  Transport transport = Transport::vxlan;  // how packets between nodes are sent
  NodeKey secret{};                        // for wireguard
};

// Where the node of another part is reached. Components on this node have no underlay.
struct Peer {
  Part part;
  Underlay underlay;
};

struct JobNetwork {
  proto::AttemptKey key;
  Part part;  // part.node is this node
  std::vector<Peer> peers;
  std::uint64_t bits_per_second = 0;  // in each direction; 0 = no limit
  proto::NetworkReach reach{};        // what it reaches besides its own parts
};

// The file, in the directory of a Fabric, to which the attempt's namespace is bound.
std::string space_file_of(const std::string& directory, const proto::AttemptKey& key);

class Fabric {
 public:
  // Makes the node's namespace, or adopts that of an earlier Fabric together with the attempts that
  // are listed here.
  static Result<std::unique_ptr<Fabric>> open(FabricOptions options,
                                              const std::vector<JobNetwork>& attempts);

  // Removes all that Fabrics have made in this directory; no attempt may run there any more.
  static Result<void> remove(const std::string& directory);

  // When it returns, the attempt has a namespace with its addresses, and the rules of its parts
  // hold on this node. Nothing is left of an attempt whose network could not be made. If the
  // attempt's profile needs a way out that this node does not have, that is an error if the profile
  // is required; otherwise the attempt gets the rest of the profile.
  Result<void> attach(const JobNetwork& job);
  // Afterwards nothing of it is left; it may never have existed. If something fails, the next
  // open() tries again.
  Result<void> detach(const proto::AttemptKey& key);

  // Handles ends of attempts and then starts, with one transaction of the packet filter for all of
  // them. Calls `told` for each start when its network is as after attach(), or with an error; then
  // for each end. Ended attempts can send or receive nothing any more; take_left() names what is
  // left of them.
  using Told = std::function<void(const proto::AttemptKey&, const Result<void>&)>;
  void turn(const std::vector<proto::AttemptKey>& ends, const std::vector<JobNetwork>& starts,
            const Told& told);
  // Directories that the caller has to remove with release_directory(), which waits for every
  // processor; any thread may do that. The next open() removes those that are still there.
  [[nodiscard]] std::vector<std::string> take_left() { return std::exchange(left_, {}); }

  // Sets the rate at which an attempt sends, or receives, from now on, in bits per second; 0 = no
  // limit. Error not_found: it has no network here.
  enum class Way { sends, receives };
  Result<void> limit(const proto::AttemptKey& key, Way way, std::uint64_t bits_per_second);

  // Makes one namespace in advance; and the number of those that are ready.
  Result<void> make_ready() { return ready_->make(); }
  [[nodiscard]] std::size_t ready() const { return ready_->size(); }

  // The file to which the attempt's namespace is bound, and a read-only sysfs that shows its links:
  // a container may not mount a sysfs for a namespace that is not its own.
  [[nodiscard]] std::string space_file(const proto::AttemptKey& key) const {
    return space_file_of(options_.directory, key);
  }
  [[nodiscard]] std::string sys_dir(const proto::AttemptKey& key) const {
    return directory_of(key) + "/" + kSysDir;
  }
  [[nodiscard]] std::size_t attempts() const { return rules_.members().size(); }
  // The name servers that the attempt may use; none if it has none, or there is no way out.
  [[nodiscard]] std::vector<NetworkRange> resolvers_of(const proto::AttemptKey& key) const;
  // Fills in the attempt's addresses, name servers and counters only. Error not_found: it has no
  // network here.
  Result<proto::AttemptNetwork> look(const proto::AttemptKey& key);
  // What all attempts have sent and received so far, and what was refused.
  struct Traffic {
    std::uint64_t sent_bytes = 0, sent_packets = 0;  // by the job
    std::uint64_t received_bytes = 0, received_packets = 0;
    std::uint64_t refused_packets = 0;
  };
  struct Counts {
    std::map<proto::AttemptKey, Traffic> attempts;
    std::map<std::string, std::uint64_t> dropped;  // packets by cause, with the names in rules.h
  };
  Result<Counts> counts();
  // The rules in force with their counters, as nftables' JSON.
  Result<std::string> rules() { return filter_->list(std::string(kTable)); }

 private:
  explicit Fabric(FabricOptions options);
  Result<void> open_node();
  [[nodiscard]] NodesLink::Options nodes_options() const;
  // Removes links except those of these attempts, by their names.
  Result<std::map<proto::AttemptKey, std::string>> remove_others(
      const std::vector<JobNetwork>& attempts);
  Result<void> set_way_to(const Peer& peer);
  Result<Member> member_of(const JobNetwork& job, const std::string& link);
  Result<WayOut::Families> have_way_out();
  Result<void> change(const std::string& rules);
  // What has been made for an attempt while turn() runs.
  struct Start {
    const JobNetwork* job = nullptr;
    ReadySpace space;
    std::optional<Member> member;
    Result<void> done;
  };
  void take_space(Start& start);
  Result<void> set_rules(std::string rules, std::vector<Start>& starts);
  Result<void> connect(const Start& start);
  Result<void> settle_node(const JobNetwork& job, const std::string& link);
  Result<void> settle_job(const JobNetwork& job);
  Result<void> leave(const proto::AttemptKey& key);
  [[nodiscard]] std::string directory_of(const proto::AttemptKey& key) const;

  FabricOptions options_;
  Fd space_;
  std::unique_ptr<Netlink> links_;
  std::unique_ptr<Filter> filter_;
  std::unique_ptr<NodesLink> nodes_;
  std::unique_ptr<ReadySpaces> ready_;
  std::vector<std::string> left_;
  std::uint64_t next_left_ = 1;
  RuleBook rules_;
  std::map<std::uint32_t, Underlay> ways_;  // address of each other node
  std::map<proto::AttemptKey, std::string>
      lacks_;  // why an attempt has no way out although it asked for one
  std::optional<WayOut::Families> way_out_;  // set if there is a way out
};

}  // namespace gantry::network
