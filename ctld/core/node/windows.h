// Reservations in time: when one begins, ends, comes again, ends because nobody uses it, and when
// some of its nodes are replaced. What a reservation means for jobs is in tenancy/reservations.h.
#pragma once

#include <optional>

#include "common/time/recurrence.h"
#include "ctld/core/context.h"

namespace gantry::core {

struct AdvanceReservation;

// True if the reservation, or a later occurrence of it, overlaps `span`.
bool takes_of(const AdvanceReservation& r, const TimeSpan& span);
// True if the two reservations, or later occurrences of them, overlap in time.
bool share_time(const AdvanceReservation& a, const AdvanceReservation& b);

// The other reservations that overlap `r` in time.
std::vector<const AdvanceReservation*> rivals_of(const State& state, const AdvanceReservation& r);
// The first of these reservations that has the node; null if none has.
const AdvanceReservation* holder_of(NodeId node,
                                    const std::vector<const AdvanceReservation*>& rivals);

// The node's jobs that may still run at `from`.
std::vector<JobId> jobs_beyond(const State& state, NodeId node, Instant from);

// Call it after a reservation was recorded: tells the scheduler, and looks at the jobs that name
// it.
void tell_window(Context& ctx, const std::string& name);

// When run_windows() has something to do next: a reservation begins or ends, or its nodes or jobs
// have to be checked.
std::optional<Instant> next_window(const Context& ctx);
void run_windows(Context& ctx);

}  // namespace gantry::core
