// The value of --dependency.
#pragma once

#include <string_view>
#include <vector>

#include "common/job/job_spec.h"
#include "common/result.h"

namespace gantry::cli {

struct DependencyList {
  std::vector<Dependency> list;
  bool any = false;  // separated by "?": one dependency that is met is enough
};

// Reads TYPE:JOB[_TASK][+MINUTES][:JOB...] or singleton; several are separated by "," or "?" (not
// both). A list of ids alone means afterany. Only `after` may have a delay.
Result<DependencyList> parse_dependency(std::string_view text);

}  // namespace gantry::cli
