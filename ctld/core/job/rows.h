// Rows: a job as listings show it. Built for 100,000 jobs a time, so nothing here decodes a spec.
#pragma once

#include "common/proto/job_query.h"
#include "ctld/core/context.h"

namespace gantry::core {

// What State alone knows; verdict, priority and expected start stay unset.
proto::JobRow plain_row(const State& state, const Job& job);

// As `gqueue` shows it now.
proto::JobRow live_row(const Context& ctx, const Job& job);

// "n[1-2,5]"
std::string node_list_of(const State& state, const Job& job);

}  // namespace gantry::core
