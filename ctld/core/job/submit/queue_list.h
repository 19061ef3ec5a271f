// Lists of partitions, or of reservations, that a submit or an update names; job/queue_choice.h
// says what becomes of them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/job/job_shape.h"
#include "ctld/core/context.h"

namespace gantry::core {

struct AdvanceReservation;
struct Partition;

// The names of a list of `things`, "partitions" or "reservations", each once; refuses a list that
// is too long or has no name.
Result<std::vector<std::string>> names_of_list(std::string_view list, std::string_view things);

// Those of the queues between which a job in `present` may move, if they are several: the ones of
// the same tenant, because its account and what it may ask for are that tenant's.
std::vector<PartitionId> queues_beside(const State& state, PartitionId present,
                                       const std::vector<PartitionId>& queues);

// When a job of this request could start in the reservation, by the limits of what runs on its
// nodes; nullopt: that is not known, or its time is too short.
std::optional<Instant> start_within(const Context& ctx, const Partition& partition,
                                    const JobShape& shape, std::optional<Duration> limit,
                                    const AdvanceReservation& r);

}  // namespace gantry::core
