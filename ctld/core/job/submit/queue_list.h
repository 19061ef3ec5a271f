// Lists of partitions or reservations that a submit or an update names; job/queue_choice.h
// describes how a job moves among them.
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

// The names of a list of `things` ("partitions" or "reservations"), each once. Refuses a list that
// is too long or has an empty name.
Result<std::vector<std::string>> names_of_list(std::string_view list, std::string_view things);

// The queues among which a job in `present` may move, if there are several. They belong to the same
// tenant, because the job's account and rights are that tenant's.
std::vector<PartitionId> queues_beside(const State& state, PartitionId present,
                                       const std::vector<PartitionId>& queues);

// When a job of this request could start in the reservation, by the limits of what runs on its
// nodes; nullopt if that is not known or the reservation is too short.
std::optional<Instant> start_within(const Context& ctx, const Partition& partition,
                                    const JobShape& shape, std::optional<Duration> limit,
                                    const AdvanceReservation& r);

}  // namespace gantry::core
