// A shim's part in fencing: it ends its job when the last contact of its node with the controller
// is too old, whether noded runs or not; see noded/runtime/contact.h.
//
// noded, if it runs, ends the job kNodedFirst earlier and says so in the job's output. The shim
// reads the contact file every kLook, so that an administrator can switch fencing on or change its
// time while the job runs. Both times are well within the margin that the controller leaves.
#pragma once

#include <string>

#include "noded/shim/shim.h"

namespace gantry::runtime {

inline constexpr Duration kNodedFirst = seconds(2);
inline constexpr Duration kLook = seconds(10);

// Says whether the job has to end; sets shim.fenced.
bool fence_is_over(Shim& shim);
// For poll(): how many milliseconds fence_is_over() need not be called again.
int fence_pause(const Shim& shim);
// Adds to the exit record that the job was fenced.
void explain_fence(const Shim& shim, ExitRecord& record);

// Waits until the held job may go on; returns false if the shim is told to end instead.
bool await_go(Shim& shim, Signals& signals);

}  // namespace gantry::runtime
