// PlanMemory: what the scheduler was told of each job, and what its last plans answered.
#pragma once

#include <map>

#include "ctld/core/job_marks.h"
#include "ctld/core/verdicts.h"
#include "ctld/sched/plan.h"

namespace gantry::core {

struct PlanMemory {
  JobMarks marks;     // what the scheduler was told of each job, and when its timer is due
  Verdicts verdicts;  // why the jobs of each class wait
  std::map<JobId, sched::Expected> expected;
};

}  // namespace gantry::core
