// Ground truth: what is really on the simulated machines, whatever controller and daemons believe.
//
// At every moment it checks that no core of a machine is used by two attempts, no memory is given
// twice, no GPU or slice has two users (for parts of a GPU: no two tenants, and no more than the
// GPU has), and that a job has at most one attempt anywhere. No attempt's user code starts twice on
// a machine, and a job that must not be requeued starts at most once.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/proto/attempt.h"
#include "common/proto/node_order.h"
#include "config/config.h"
#include "noded/core/core.h"
#include "tests/sim/queue.h"
#include "tests/sim/trace.h"

namespace gantry::sim {

using proto::AttemptKey;

class Truth {
 public:
  Truth(const Queue& queue, Trace& trace) : queue_(queue), trace_(trace) {}

  // Something of the attempt is on the machine from now on, until gone().
  void begins(const NodeConfig& node, const GpuInventory& gpus, const proto::Launch& launch);
  void user_code_starts(const std::string& node, const proto::Launch& launch);
  void kills(const std::string& node, const AttemptKey& key);  // sends SIGKILL to running code
  void gone(const std::string& node, const AttemptKey& key);
  // `slept` is the total time for which the machine has slept.
  void exit_recorded(const std::string& node, const AttemptKey& key, const node::Exit& exit,
                     Duration slept);

  [[nodiscard]] bool live(const std::string& node, const AttemptKey& key) const;
  [[nodiscard]] const node::Exit* exit_of(const std::string& node, const AttemptKey& key) const;
  // Returns what is on machines now, as node and attempt.
  [[nodiscard]] std::vector<std::pair<std::string, AttemptKey>> alive() const;
  // Called when a store that was replaced by a copy does not know that the job has run: nothing of
  // it runs, and it may run again under the same attempt numbers.
  void runs_anew(JobId job);
  struct End {
    Instant at{};  // by the world's clock
    Duration slept{};
    Duration stopped{};  // of the time slept, how long the machine's clock stood still
  };
  // The clock of a machine stands still for this long, or for this much less than announced before.
  void clock_stops(const std::string& node, Duration length) {
    stopped_[node] = stopped(node) + length;
  }
  [[nodiscard]] Duration stopped(const std::string& node) const {
    const auto it = stopped_.find(node);
    return it == stopped_.end() ? Duration{} : it->second;
  }
  [[nodiscard]] End end_of(const std::string& node, const AttemptKey& key) const {
    return ends_.at({node, key});
  }
  [[nodiscard]] bool started(const std::string& node, const AttemptKey& key) const;
  // Returns the time of its first kill.
  [[nodiscard]] std::optional<Instant> killed(const std::string& node, const AttemptKey& key) const;
  [[nodiscard]] std::size_t live_count() const { return live_.size(); }
  [[nodiscard]] std::uint64_t runs() const { return starts_.size(); }

 private:
  using Where = std::pair<std::string, AttemptKey>;
  [[noreturn]] void broken(const std::string& promise) const {
    trace_.broken(queue_.now(), promise);
  }

  const Queue& queue_;
  Trace& trace_;
  struct Live {
    NodePlacement has;
    std::string tenant;  // the tenant that pays
  };
  void check_gpus(const std::string& node, const GpuInventory& gpus, const proto::Launch& launch);
  std::map<Where, Live> live_;
  std::map<JobId, std::map<Attempt, int>> live_attempts_;  // the number of nodes of each attempt
  std::map<Where, node::Exit> exits_;
  std::map<Where, End> ends_;
  std::map<std::string, Duration> stopped_;
  std::set<Where> starts_;
  std::map<Where, Instant> kills_;
  std::map<JobId, bool> may_return_;  // by job: its setting for requeue at its last start
};

}  // namespace gantry::sim
