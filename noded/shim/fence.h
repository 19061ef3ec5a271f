// A shim's part in fencing: it ends its job when the last contact of its node with the controller
// is too old, whether noded runs or not; see noded/runtime/contact.h.
//
// noded, if it runs, ends the job kNodedFirst earlier and says so in the job's output. The file is
// looked at kLook apart, so that fencing may be switched on, or its time changed, while the job
// runs. Both are well within the margin that the controller leaves.
#pragma once

#include <string>

#include "noded/shim/shim.h"

namespace gantry::runtime {

inline constexpr Duration kNodedFirst = seconds(2);
inline constexpr Duration kLook = seconds(10);

// Whether the job has to end; sets shim.fenced.
bool fence_is_over(Shim& shim);
// For poll(), in milliseconds: how long that need not be asked again.
int fence_pause(const Shim& shim);
// What the exit record says of it.
void explain_fence(const Shim& shim, ExitRecord& record);

}  // namespace gantry::runtime
