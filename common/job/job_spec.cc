// The special members of what a job asks for.
#include "common/job/job_spec.h"

namespace gantry {

GANTRY_DEFINE_SPECIAL_MEMBERS(JobSpec)
GANTRY_DEFINE_SPECIAL_MEMBERS(JobShape)
GANTRY_DEFINE_SPECIAL_MEMBERS(ContainerSpec)

}  // namespace gantry
