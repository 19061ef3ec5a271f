// Nodes set aside for a time: advance reservations and maintenance windows. Which nodes, for whom
// and until when is State (tenancy_state.h); the planner keeps other jobs off (timeline.h). Here:
// who may name one, what a waiting job hears of it, and its end by time.
#pragma once

#include <optional>
#include <string>

#include "ctld/core/context.h"

namespace gantry::core {

inline constexpr std::size_t kMaxReservations = 1000;
inline constexpr std::size_t kMaxReservationNames = 1000;  // tenants, or users, of one

// May this job name this reservation, and can the window ever hold it? The error says what is
// wrong.
Result<void> check_reservation(const Context& ctx, const Identity& who, const Partition& partition,
                               const JobShape& shape, std::optional<Duration> limit,
                               const std::string& name);

// May the waiting job use the reservation of this name that is there now? It may be another one
// than that for which the job was checked when it was submitted.
bool let_into(const State& state, const Job& job, const std::string& name);

// A reservation of this name was made, or is gone: who may use it is looked at again.
void look_at_waiting(Context& ctx, const std::string& name);

// Of a job that waits for, or is kept off by, a reservation of this name.
std::string reservation_words(const Context& ctx, const Job& job,
                              const std::string& name);  // its own
std::string window_words(const Context& ctx, const std::string& name, Instant from);

// What time brings: windows that begin and end.
std::optional<Instant> next_window(const Context& ctx);
void run_windows(Context& ctx);

}  // namespace gantry::core
