// Changes the jobs that a request names, one by one: checks whether the asker may change each and
// its state allows it, and answers. Pending array tasks that are named one by one become elements
// first.
#pragma once

#include <functional>
#include <vector>

#include "common/proto/job_ref.h"
#include "common/result.h"
#include "ctld/core/request.h"
#include "ctld/core/state/moves.h"
#include "ctld/core/state/ordinal_set.h"

namespace gantry::core {

struct Context;
struct Job;

inline constexpr std::uint32_t kMaxSplit = 1000;  // tasks that one request may turn into elements

enum class Turns : std::uint8_t { by_id, last_named_first };

// Calls change(job) for each job and answers with JobsDone.
void change_jobs(Context& ctx, const ClientRequest& from, const std::vector<proto::JobRef>& refs,
                 Trigger trigger, const std::function<Result<void>(const Job&)>& change,
                 Turns turns = Turns::by_id);

// Turns these pending tasks into elements and returns their ids.
Result<std::vector<JobId>> split_tasks(Context& ctx, JobId array, const OrdinalSet& tasks);

}  // namespace gantry::core
