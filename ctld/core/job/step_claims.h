// What a step takes of its job's GPUs and memory for itself. A step that asks for none of its own
// sees all of the job's. Steps that run at the same time get different GPUs, unless a step
// overlaps; a step for which not enough are free has to wait.
#pragma once

#include <cstdint>
#include <vector>

#include "common/proto/steps.h"
#include "common/result.h"
#include "ctld/core/state/state.h"

namespace gantry::core {

struct StepClaims {
  // By node of the step, as in StepState. Empty if the step asks for no GPUs of its own.
  std::vector<std::vector<std::uint16_t>> gpus;
  std::vector<std::int64_t> memory;
  bool busy = false;  // other steps use what this step asks for
  void put(std::size_t node, proto::StepNode& out) const;
};

// Whether other steps leave enough of the job's GPUs on this node for a step that has `nodes` nodes
// and one task on this one.
bool has_free_gpus(const State& state, const Job& job, const NodeRun& run,
                   const proto::StepShape& shape, std::size_t nodes);

// `nodes` and `tasks` are those of the step, in rank order. Error never_fits if the job itself has
// too little.
Result<StepClaims> claims_of(const State& state, const Job& job, const proto::StepShape& shape,
                             const std::vector<const NodeRun*>& nodes,
                             const std::vector<std::uint32_t>& tasks, std::uint32_t cpus_per_task);

}  // namespace gantry::core
