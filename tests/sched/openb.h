// Alibaba's openb trace of 2023 (Weng et al., USENIX ATC 2023): placement without departures,
// by the shipped planner through schedule().
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ctld/sched/change.h"

namespace gantry::sched {

struct OpenbTask {
  JobShape shape;                                    // cores rounded up to whole ones
  [[nodiscard]] std::uint64_t thousandths() const {  // of GPUs
    return std::uint64_t{shape.gpus_per_node} * 1000 + shape.gpu_share;
  }
};

struct Openb {
  std::vector<NodeChanged> nodes;
  std::vector<OpenbTask> tasks;
  std::uint64_t gpus = 0;  // devices of all nodes
};

// nullopt where the files are absent. The list of tasks may end with the fifth column: no models.
std::optional<Openb> read_openb(const std::string& nodes, const std::string& tasks);

// Another mix of the same tasks, as the trace's authors made them: gpushare100 (all requests for
// GPUs are for parts of one, as many GPUs in all), multigpu50 (half of the GPUs are asked for by
// tasks of several), gpuspec33 (a third of the tasks with GPUs name a model), cpu200 (twice as many
// tasks without GPUs); "default" is the trace.
Openb openb_mix(const Openb& openb, const std::string& mix);

struct OpenbResult {
  double allocated = 0;  // GPUs in use at the end, percent of all
  std::size_t placed = 0, refused = 0;
};
// The tasks in random order, resampled ones after them until the GPUs asked for are 130 % of all.
// Each is queued, gets one plan with the default policy, and leaves if it was not started; what
// runs stays.
OpenbResult run_openb(const Openb& openb, std::uint64_t seed);

}  // namespace gantry::sched
