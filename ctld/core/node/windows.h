// Reservations in time: when one begins, ends, comes again, is given up because nobody uses it, and
// when other nodes take the place of some of its nodes. What a reservation is for jobs stands in
// tenancy/reservations.h.
#pragma once

#include <optional>

#include "common/time/recurrence.h"
#include "ctld/core/context.h"

namespace gantry::core {

struct AdvanceReservation;

// True if the reservation has some of the time in `span`, now or when it comes again.
bool takes_of(const AdvanceReservation& r, const TimeSpan& span);
// True if the two have some time in common, now or when they come again.
bool share_time(const AdvanceReservation& a, const AdvanceReservation& b);

// The other reservations that have some time in common with `r`.
std::vector<const AdvanceReservation*> rivals_of(const State& state, const AdvanceReservation& r);
// The first of them that has the node; null: none.
const AdvanceReservation* holder_of(NodeId node,
                                    const std::vector<const AdvanceReservation*>& rivals);

// The node's jobs that may still run at `from`.
std::vector<JobId> jobs_beyond(const State& state, NodeId node, Instant from);

// Call it after a reservation was recorded: the scheduler and the jobs that name it hear of it.
void tell_window(Context& ctx, const std::string& name);

// When run_windows() has something to do next: a reservation begins or ends, or its nodes or jobs
// are to be looked at.
std::optional<Instant> next_window(const Context& ctx);
void run_windows(Context& ctx);

}  // namespace gantry::core
