// The networks of this node's jobs (noded/network/fabric.h) for the daemon's loop: calls wait for
// the kernel, so they are made on a thread of their own, one after the other. What comes of them is
// told on the loop.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/log/log.h"
#include "common/proto/attempt.h"
#include "common/proto/job_network.h"
#include "noded/gpu/driver_thread.h"

namespace gantry::node {

// Where a runtime finds the network of one attempt; paths.
struct JobNetworkPlace {
  std::string space, sys;
};

class JobNetworks {
 public:
  struct Options {
    std::string directory;  // of the node's and the jobs' namespaces; made if it is not there
    std::string cluster;    // its name; clusters of different names do not hear each other
  };
  // Attempts of earlier daemons, which still run.
  using Running = std::vector<std::pair<proto::AttemptKey, proto::JobNetwork>>;

  JobNetworks(Options options, loop::Loop& loop, const Logger& log);
  ~JobNetworks();
  JobNetworks(const JobNetworks&) = delete;
  JobNetworks& operator=(const JobNetworks&) = delete;

  // Takes over what is there of these attempts, and removes the rest. Called once, before attach().
  void adopt(Running running);
  // Calls `done` on the loop when the attempt has its network and its rules hold, or with why not.
  void attach(const proto::AttemptKey& key, const proto::JobNetwork& network,
              std::function<void(Result<JobNetworkPlace>&&)> done);
  void detach(const proto::AttemptKey& key);
  // Removes everything if no attempt has a network, and waits for it, two seconds at most; the last
  // call.
  void leave();

 private:
  struct Work;
  std::shared_ptr<Work> work_;
  std::shared_ptr<gpu::Outlet> outlet_;
  gpu::DriverThread thread_;
};

// The address by which the job is known on the part's node: IPv4 if it has one there, else IPv6.
std::string address_of(const proto::NetworkPart& part);

}  // namespace gantry::node
