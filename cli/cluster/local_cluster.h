// A whole cluster on this machine: where its files are, what its gantry.yaml says, and its keys.
// The commands up, down and status are in cmd_up.cc.
//
//   DIR/gantry.yaml client.conf ctld.pub      readable by all
//   DIR/ctld.key  DIR/ctld/                   the controller's secret and state
//   DIR/nodes/NAME/{key,state,run}            each node's
//   DIR/gate                                  gantry-gate's
//   DIR/users/NAME.key                        keys that speak for users, each readable by its owner
//   DIR/log  DIR/pid
#pragma once

#include <string>
#include <vector>

#include "cli/client_config.h"
#include "cli/cluster/daemons.h"
#include "common/result.h"
#include "config/config.h"

namespace gantry::cli {

struct ClusterRequest {
  std::string name = "local";
  std::uint32_t nodes = 0;  // 0 = one per core, at most four
  std::uint32_t cpus = 0;   // CPUs of each node; 0 = an equal share
  // Bytes of memory of each node; 0 = an equal share of four fifths of the machine's.
  std::int64_t memory = 0;
  std::vector<std::string> users;  // each gets a key, so munge is not needed
  std::vector<std::string> runtimes{"crun", "runc"};
  bool oversubscribe = false;
  bool root_jobs = false;    // root may submit jobs; for development
  bool job_networks = true;  // if this machine supports them
  bool gate = true;          // on loopback, if HAProxy is installed
};

struct Machine {
  std::vector<std::uint16_t> cpus;  // logical CPUs that may be used
  std::int64_t memory = 0;          // bytes
};
Result<Machine> look_at_machine();

// Returns the request with its sizes filled in, or an error: one sentence about why they do not
// fit.
Result<ClusterRequest> settle_sizes(ClusterRequest request, const Machine& machine);

class LocalCluster {
 public:
  // The cluster of --state DIR; if that is not given, of /var/lib/gantry/local for root, and of
  // $XDG_STATE_HOME/gantry for other users.
  static Result<LocalCluster> at(const std::string& directory);

  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] bool exists() const;  // true if there is a gantry.yaml made by `gantry up`
  Result<void> create(const ClusterRequest& request, const Machine& machine) const;
  [[nodiscard]] Result<Config> config() const;
  [[nodiscard]] Result<ClientConfig> client() const;
  // The daemons to start, the controller first. The addresses of the nodes come from the
  // configuration.
  [[nodiscard]] Result<std::vector<Daemon>> daemons(const Config& config) const;
  Result<void> remove() const;  // removes the whole directory, if `gantry up` made it

 private:
  explicit LocalCluster(std::string directory) : directory_(std::move(directory)) {}
  [[nodiscard]] std::string path(std::string_view name) const {
    return directory_ + "/" + std::string(name);
  }
  Result<void> make_tree(const ClusterRequest& request) const;
  Result<void> make_node_keys(const ClusterRequest& request) const;
  Result<void> make_user_keys(const ClusterRequest& request) const;

  std::string directory_;
};

std::string node_name(std::uint32_t index);  // "node1" for index 0
bool munge_works();

}  // namespace gantry::cli
