// May this job start, apart from resources? The queue, the re-check of a plan and the explanations
// use these functions, so that they agree.
//
// The subjects of this folder are here too; see ctld/core/subject.h.
#pragma once

#include <cstdint>

#include "common/time/time.h"
#include "ctld/core/state/ordinal_set.h"
#include "ctld/core/subject.h"

namespace gantry::core {

enum class Gate : std::uint8_t { open, waiting, never };

// The state of all dependencies of a job, without aftercorr of single tasks.
Gate dependency_gate(const Job& job);

// The pending tasks of an array whose dependencies allow a start.
OrdinalSet ready_tasks(const Job& array);

// The latest start of a waiting job with which it can end before its deadline. Unset for an array
// without pending tasks, because its elements have their own.
std::optional<Instant> latest_start(const State& state, const Job& job);

// How many starts the queue may offer now: 0 or 1 for a job or element; for an array, the tasks
// that are ready and within its limit. A component of a heterogeneous job may start only when all
// its components may.
std::uint32_t startable(const Context& ctx, const Job& job);

// How many more tasks of the job's array may start under its %N limit; unset if there is no limit.
std::optional<std::uint32_t> array_room(const State& state, const Job& job);

// The waits of this connection are forgotten (handle_wait.cc).
void drop_waits(Context& ctx, ConnectionId connection);

extern const Subject kHold, kDependencies, kBeginTime, kArrayLimit, kLicenses, kRunHabits;
// What messages are handled here.
extern const Subject kCancelMessages, kCheckpointMessages, kHoldMessages, kIdentityMessages,
    kListMessages, kLogMessages, kNetworkMessages, kNoteMessages, kNotifyMessages, kRequeueMessages,
    kStepMessages, kSuspendMessages, kTopMessages, kUpdateMessages, kWaitMessages;

}  // namespace gantry::core
