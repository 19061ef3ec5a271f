// The networks of this node's jobs (noded/network/fabric.h) for the daemon's loop. Calls wait for
// the kernel, so they are made on a thread of their own, one after the other; starts and ends that
// wait at the same moment are made together. Results are reported on the loop.
//
// When no job has started or ended for a moment, namespaces are made in advance for the next jobs;
// a start waits for at most one that is being made. A thread of its own removes what ended jobs
// left, so that nobody waits for that.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/fd.h"
#include "common/log/log.h"
#include "common/loop/loop.h"
#include "common/proto/attempt.h"
#include "common/proto/job_network.h"
#include "noded/gpu/driver_thread.h"
#include "noded/network/fabric.h"
#include "noded/site_links.h"

namespace gantry::node {

// Where a runtime finds the network of one attempt; paths.
struct JobNetworkPlace {
  std::string space, sys;
  std::vector<std::string> resolvers{};  // addresses of the name servers that the attempt may use
};

class JobNetworks {
 public:
  struct Options {
    std::string
        directory;  // directory of the node's and the jobs' namespaces; made if it does not exist
    std::string
        cluster;  // its name; clusters with different names do not receive each other's packets
    network::Blocks blocks{};  // address ranges of jobs
    network::Transport transport = network::Transport::vxlan;
    std::string key_file{};       // file of wireguard's secret key; made if it does not exist
    network::Cni::Options cni{};  // the site's CNI plugins; with an empty list there are none
    // Machines of the cluster, as HOST or HOST:PORT, which jobs cannot reach through a network
    // profile.
    std::vector<std::string> machines{};
    std::vector<std::string> resolvers{};  // noded.resolvers
    std::uint32_t ready = 0;               // namespaces made in advance: noded.ready_networks
  };
  // Attempts of earlier daemons that still run.
  using Running = std::vector<std::pair<proto::AttemptKey, proto::JobNetwork>>;

  JobNetworks(Options options, loop::Loop& loop, const Logger& log);
  ~JobNetworks();
  JobNetworks(const JobNetworks&) = delete;
  JobNetworks& operator=(const JobNetworks&) = delete;

  // Takes over the networks of these attempts, and removes the others. Called once, before
  // attach().
  void adopt(Running running);
  // Calls `done` on the loop when the attempt has its network and firewall rules, or with an error;
  // not called if detach() comes before anything was made.
  void attach(const proto::AttemptKey& key, const proto::JobNetwork& network,
              std::function<void(Result<JobNetworkPlace>&&)> done);
  void detach(const proto::AttemptKey& key);
  // Reports the attempt's network and its counters, and tries to connect to the target
  // ("HOST:PORT", an address or a node of the job; "" = none) from inside; calls `done` on the
  // loop.
  void probe(const proto::AttemptKey& key, const std::string& target,
             std::function<void(Result<proto::AttemptNetwork>&&)> done);
  // Limits what the attempt sends, or receives, to this many bytes per second; 0 = back to its own
  // rate, which attempts of an earlier daemon get back by themselves.
  void hold(const proto::AttemptKey& key, network::Fabric::Way way, std::uint64_t bytes_per_second);
  // Reports the traffic of all networks; nullopt if none was ever made. Calls `done` on the loop.
  void count(std::function<void(Result<network::Fabric::Counts>&&)> done);
  // The address of the job on the part's node: IPv4 if it has one there, else IPv6.
  [[nodiscard]] std::string address_of(const proto::NetworkPart& part) const;
  // Removes everything if no attempt has a network, and waits for it, at most two seconds; call it
  // last.
  void leave();

 private:
  struct Work;
  struct Stock;
  void turn();
  void tend(const Stock& stock);
  void do_one();
  [[nodiscard]] SiteLinks::Place place_of(const proto::AttemptKey& key) const;
  void add_links(const proto::AttemptKey& key, Result<JobNetworkPlace>&& place,
                 const std::function<void(Result<JobNetworkPlace>&&)>& done);
  struct Trial {  // a connection that is being tried
    Fd socket;
    proto::AttemptNetwork network;
    std::function<void(Result<proto::AttemptNetwork>&&)> done;
    loop::Watch ready, limit;
  };
  void try_out(Trial trial);
  void finish(std::uint64_t number, proto::ProbeResult result, std::string why);

  loop::Loop& loop_;
  network::Blocks blocks_;
  std::unique_ptr<SiteLinks> links_;         // null: the site has no CNI plugins
  std::set<proto::AttemptKey> attaching_{};  // attempts whose network is not ready yet
  std::map<std::uint64_t, Trial> trials_;
  std::uint64_t next_trial_ = 1;
  bool tending_ = false;                          // idle-time work is in progress
  std::uint64_t turns_ = 0, idle_after_ = ~0ULL;  // the call after which an idle time has begun
  loop::Watch idle_;
  std::shared_ptr<Work> work_;
  std::shared_ptr<gpu::Outlet> outlet_;
  gpu::DriverThread thread_;
  std::shared_ptr<gpu::DriverThread> removals_;
};

// Makes a network of one job and removes it again, below `directory`, as a test; returns what this
// node reports to the others about its transport (they know it by this address), or what the
// machine lacks. May call the resolver.
Result<std::string> try_job_networks(const JobNetworks::Options& options,
                                     const std::string& directory, const std::string& address);

}  // namespace gantry::node
