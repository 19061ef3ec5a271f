// Lists of jobs as people write them: "12,13_4,14_[1-3,9]".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/proto/job_ref.h"
#include "common/result.h"

namespace gantry::cli {

// Reads a list of jobs and adds them to `out`. Commas within brackets belong to the id. Error:
// "Invalid job id abc".
Result<void> add_job_refs(std::vector<proto::JobRef>& out, std::string_view text);
// The jobs of all these lists.
Result<std::vector<proto::JobRef>> job_refs_of(const std::vector<std::string>& texts);

}  // namespace gantry::cli
