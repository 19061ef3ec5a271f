// The value of --dependency.
#pragma once

#include <string_view>
#include <vector>

#include "common/job/job_spec.h"
#include "common/result.h"

namespace gantry::cli {

struct DependencyList {
  std::vector<Dependency> list;
  bool any = false;  // parted by "?": one that is met is enough
};

// TYPE:JOB[_TASK][+MINUTES][:JOB...] or singleton, parted by "," or "?" (not both). A bare list of
// ids means afterany. The delay is for `after` only.
Result<DependencyList> parse_dependency(std::string_view text);

}  // namespace gantry::cli
