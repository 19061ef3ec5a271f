// May this job start, going by everything but resources? Used by the queue, by the re-check of a
// plan, and by the explanations, so that they agree.
#pragma once

#include <cstdint>

#include "common/time/time.h"
#include "ctld/core/state/state.h"

namespace gantry::core {

enum class Gate : std::uint8_t { open, waiting, never };

// Dependencies of a job as a whole, without aftercorr of single tasks.
Gate dependency_gate(const Job& job);

// Pending tasks of an array whose dependencies allow a start.
OrdinalSet ready_tasks(const Job& array);

// When a waiting job must have started, to end before its deadline. Not for an array of which
// nothing waits any more: its elements see to themselves.
std::optional<Instant> latest_start(const State& state, const Job& job);

// How many starts the queue may offer now: 0 or 1 for a job or element, of an array the tasks that
// are ready and within its limit. A component of a heterogeneous job may when all components may.
std::uint32_t startable(const State& state, const Job& job, Instant now);

// Tasks of the job's array that count against its %N limit; unset if there is no limit.
std::optional<std::uint32_t> array_room(const State& state, const Job& job);

}  // namespace gantry::core
