// Rows: a job as listings show it. Up to 100,000 are built at a time, so nothing here decodes a
// spec.
#pragma once

#include "common/proto/job_query.h"
#include "ctld/core/context.h"

namespace gantry::core {

// The row as State alone gives it; verdict, priority and expected start stay unset.
proto::JobRow plain_row(const State& state, const Job& job);

// The row as `gqueue` shows it now.
proto::JobRow live_row(const Context& ctx, const Job& job);

// The partitions that a waiting job named, such as "day,night"; its only one if it named no more.
std::string names_of_queues(const State& state, const Job& job);

// The job's nodes, as "n[1-2,5]".
std::string node_list_of(const State& state, const Job& job);

}  // namespace gantry::core
