// What others say of what has run, held to what can be true: it is added up, kept as long as the
// history, and shown. Nodes report whole attempts; a step's account comes from its user's own
// program, which may say anything.
#pragma once

#include "common/job/job_state.h"
#include "common/proto/steps.h"
#include "common/resources/gpu.h"
#include "common/time/time.h"

namespace gantry::core {

inline constexpr std::size_t kMostGpuName = 128;  // bytes

// Without amounts that no machine can have used, and series that are too long.
Usage held_to_possible(const Usage& usage);

// Without parts that no node has so many of; an inventory that is larger than any node's becomes
// one without GPUs that says so.
GpuInventory held_to_possible(GpuInventory gpus);

// A step's: it began when its job did at the earliest, has ended by now, and has no usage by GPU,
// which only whole attempts have.
void hold_to_possible(proto::StepDone& done, Instant job_began, Instant now);

}  // namespace gantry::core
