// Limits reports of usage and times to values that are possible, because these are added up, shown,
// and kept in the history. Nodes report whole attempts; the report of a step comes from a program
// of its user, which may send anything.
#pragma once

#include "common/job/job_state.h"
#include "common/proto/steps.h"
#include "common/resources/gpu.h"
#include "common/time/time.h"

namespace gantry::core {

inline constexpr std::size_t kMostGpuName = 128;  // bytes

// Clamps amounts that no machine can have used, and drops series that are too long.
Usage held_to_possible(const Usage& usage);

// Drops parts of which no node has so many. An inventory larger than any node's is replaced by one
// without GPUs that says so.
GpuInventory held_to_possible(GpuInventory gpus);

// For a step: it did not begin before its job, and has ended by now. It has no usage by GPU,
// because only whole attempts have that.
void hold_to_possible(proto::StepDone& done, Instant job_began, Instant now);

}  // namespace gantry::core
