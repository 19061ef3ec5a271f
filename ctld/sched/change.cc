// The special members of what the core tells the scheduler.
#include "ctld/sched/change.h"

namespace gantry::sched {

GANTRY_DEFINE_SPECIAL_MEMBERS(NodeChanged)
GANTRY_DEFINE_SPECIAL_MEMBERS(Change)

}  // namespace gantry::sched
