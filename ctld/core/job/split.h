// Changing jobs that a request names, one by one: who may, whether the state allows it, and what is
// answered. Pending array tasks that are named one by one become elements of their own first.
#pragma once

#include <functional>

#include "ctld/core/context.h"
#include "ctld/core/state/moves.h"

namespace gantry::core {

inline constexpr std::uint32_t kMaxSplit = 1000;  // tasks that one request may make elements

enum class Turns : std::uint8_t { by_id, last_named_first };

// Calls change(job) for each and answers JobsDone.
void change_jobs(Context& ctx, const ClientRequest& from, const std::vector<proto::JobRef>& refs,
                 Trigger trigger, const std::function<Result<void>(const Job&)>& change,
                 Turns turns = Turns::by_id);

// Makes elements of these pending tasks; their ids.
Result<std::vector<JobId>> split_tasks(Context& ctx, JobId array, const OrdinalSet& tasks);

}  // namespace gantry::core
