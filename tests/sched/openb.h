// Replays Alibaba's openb trace of 2023 (Weng et al., USENIX ATC 2023), in which jobs never end,
// with the shipped planner through schedule().
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ctld/sched/change.h"

namespace gantry::sched {

struct OpenbTask {
  JobShape shape;                                    // cores are rounded up to whole ones
  [[nodiscard]] std::uint64_t thousandths() const {  // thousandths of a GPU
    return std::uint64_t{shape.gpus_per_node} * 1000 + shape.gpu_share;
  }
};

struct Openb {
  std::vector<NodeChanged> nodes;
  std::vector<OpenbTask> tasks;
  std::uint64_t gpus = 0;  // devices of all nodes
};

// Returns nullopt if the files are missing. The list of tasks may end with the fifth column,
// without models.
std::optional<Openb> read_openb(const std::string& nodes, const std::string& tasks);

// Makes another mix of the same tasks, as the trace's authors did: gpushare100 (all requests are
// for parts of a GPU, as many GPUs in all), multigpu50 (half of the GPUs are requested by tasks
// with several), gpuspec33 (a third of the tasks with GPUs name a model), cpu200 (twice as many
// tasks without GPUs); "default" is the trace itself.
Openb openb_mix(const Openb& openb, const std::string& mix);

struct OpenbResult {
  double allocated = 0;  // GPUs in use at the end, in percent of all
  std::size_t placed = 0, refused = 0;
};
// Submits the tasks in random order, and random ones of them again, until the requested GPUs are
// 130 % of all. Each task is queued, gets one plan with the default policy, and is removed if it
// was not started; started tasks stay.
OpenbResult run_openb(const Openb& openb, std::uint64_t seed);

}  // namespace gantry::sched
