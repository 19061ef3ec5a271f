// The jobs of a line are of one class and one user, so what is reserved for one of them would do
// for any other: the first jobs get the earliest reservations. If a reservation was lost (its node
// went down), or a job came in front, the reservations of the line are assigned again. Otherwise
// the first job of the line would wait for reservations of later jobs, and these would wait for
// their turn after it, while their nodes are idle.
#pragma once

#include <functional>
#include <set>
#include <vector>

#include "ctld/sched/queue/queue.h"
#include "ctld/sched/time/reservations.h"

namespace gantry::sched {

// The lines whose reservations are not in the order of their jobs.
[[nodiscard]] std::set<std::uint32_t> lines_to_deal(const Queue& queue,
                                                    const Reservations& reservations);

// Gives the reservations of these lines to the first jobs of each line; all reservations of the
// lines must be among `reservations`. A reservation for which no job is left is dropped. Calls
// `given` for each reservation that a job got.
void deal_out(const Queue& queue, std::vector<Reservation>& reservations,
              const std::set<std::uint32_t>& lines, const std::function<void(Reservation&)>& given);

}  // namespace gantry::sched
