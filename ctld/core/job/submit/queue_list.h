// Lists of partitions that a submit or an update names; job/queue_choice.h says what becomes of
// them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ctld/core/context.h"

namespace gantry::core {

// The names of a list; refuses one that is too long or has no name.
Result<std::vector<std::string>> names_of_list(std::string_view list);

// Those of the queues between which a job in `present` may move, if they are several: the ones of
// the same tenant, because its account and what it may ask for are that tenant's.
std::vector<PartitionId> queues_beside(const State& state, PartitionId present,
                                       const std::vector<PartitionId>& queues);

}  // namespace gantry::core
