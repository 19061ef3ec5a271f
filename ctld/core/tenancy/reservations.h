// Nodes set aside for a time: advance reservations and maintenance windows. State (tenancy_state.h)
// has their nodes, users and times, and the planner keeps other jobs off them (timeline.h). This
// file decides who may name one, and what a waiting job is told about it; node/windows.h handles
// its start and end.
#pragma once

#include <optional>
#include <string>

#include "common/job/job_shape.h"
#include "common/job/job_state.h"
#include "ctld/core/context.h"
#include "ctld/core/request.h"
#include "ctld/core/state/job.h"
#include "ctld/core/state/state.h"

namespace gantry::core {

struct Partition;

inline constexpr std::size_t kMaxReservations = 1000;
inline constexpr std::size_t kMaxReservationNames = 1000;  // tenants, or users, of one reservation

// Refuses a job that may not name this reservation, or that its window can never hold. The error
// says what is wrong.
Result<void> check_reservation(const Context& ctx, const Identity& who, const Partition& partition,
                               const JobShape& shape, std::optional<Duration> limit,
                               const std::string& name);

// May the waiting job use the present reservation of this name? The reservation may have been
// replaced since the job was checked at submit.
bool let_into(const State& state, const Job& job, const std::string& name);

// Calls f for the name of each reservation that the job may use: while the job waits, all that it
// named; afterwards the one in which it was placed.
template <class F>
void each_window_of(const State& state, const Job& job, F&& f) {
  if (job.phase == Phase::queued && job.windows) {
    for (const std::string& name : *job.windows) f(name);
  } else if (const std::string& name = class_of(state, job).reservation; !name.empty()) {
    f(name);
  }
}

// Call it when a reservation of this name was made or removed: waiting jobs that name it are looked
// at again.
void look_at_waiting(Context& ctx, const std::string& name);

// Explains to a job that it waits for, or is kept off by, a reservation of this name.
std::string reservation_words(const Context& ctx, const Job& job,
                              const std::string& name);  // the job's own one
std::string window_words(const Context& ctx, const std::string& name, Instant from);

}  // namespace gantry::core
