// The takings: what was held and what it must cost, computed from the committed events
// independently, and compared with the core's ledger.
//
// Nothing is lost and nothing is charged twice. For each resource, capacity x time is exactly the
// sum of what was charged, credited and idle. In money, the ledger has the sum of exact products
// over all attempts, with each line rounded once. Time is cut at every full hour, because all
// prices of a history change at full hours.
#pragma once

#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "config/config.h"
#include "ctld/core/event/event.h"
#include "ctld/core/event/events_attempt.h"
#include "ctld/core/event/events_cluster.h"
#include "ctld/core/state/state.h"
#include "tests/sim/queue.h"
#include "tests/sim/trace.h"

namespace gantry::sim {

class Takings {
 public:
  Takings(const Queue& queue, Trace& trace, const Config& config)
      : queue_(queue), trace_(trace), config_(config) {}

  void take(Instant at, core::EventRef event);
  // Compares with the ledger as of the last event.
  void compare(const core::State& state) const;
  [[nodiscard]] Money sum() const;  // the cost of everything that was ever held

 private:
  using Wide = __int128;
  static constexpr std::size_t kKinds = 6;  // cpu, memory, scratch, gpu, io, net
  struct Line {
    core::BillItem what;
    std::int64_t amount = 0;
    Wide cost = 0;  // in parts of unit x hour x both factors
  };
  struct Attempt {
    std::string tenant, plan;
    Instant since{};
    std::vector<Line> lines;
    std::map<NodeId, std::vector<core::HeldPart>> held;
  };

  void declared(const core::event::NodeDeclared& e);
  void placed(Instant at, const core::event::JobPlaced& e);
  [[nodiscard]] std::int64_t sound_gpus(NodeId node) const;
  void check_amounts(const core::event::JobPlaced& e, std::size_t grant) const;
  void exited(Instant at, const core::event::NodeExited& e);
  void advance_time(Instant to);
  void note(JobId job,
            Instant until);  // records what was held until then, whatever is reported later
  void reckon(Attempt& attempt, Instant to) const;
  [[nodiscard]] static Money rounded(const Line& line);
  [[noreturn]] void broken(const std::string& promise) const {
    trace_.broken(queue_.now(), promise);
  }

  const Queue& queue_;
  Trace& trace_;
  const Config& config_;
  Instant now_{};
  std::vector<const NodeConfig*> nodes_;  // by id; nullptr if the node is not in the configuration
  std::map<NodeId, GpuInventory> found_;  // as the node last reported
  std::set<std::pair<NodeId, std::string>> drained_;  // GPUs, by UUID
  std::array<std::int64_t, kKinds> capacity_{}, taken_{};
  std::array<Wide, kKinds> whole_{}, held_{}, idle_{};  // amount x microseconds
  std::map<JobId, std::string> tenants_;                // of a job or array, by its queue
  std::map<JobId, JobId> arrays_;
  std::map<PartitionId, std::string> payers_;
  std::map<JobId, Attempt> attempts_;  // attempts that hold something
  Money over_;                         // costs of attempts that have ended
  core::Documents documents_;
  core::PriceTable prices_;
};

}  // namespace gantry::sim
