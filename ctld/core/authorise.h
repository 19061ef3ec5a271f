// Who may do what: the one place. Every client message passes authorise() before anything else, and
// whatever is not allowed there by name is refused. Every listing and every change of a single job
// asks may_see() and may_change().
//
// Rules: an administrator may do everything. An ordinary user sees and touches only the jobs that
// run as their own uid: other users' jobs are not in listings, and naming one is answered as if it
// did not exist. Nodes and partitions are visible to all, and changed by administrators. A request
// from inside a job has its owner's rights as an ordinary user.
#pragma once

#include "ctld/core/core.h"

namespace gantry::core {

Result<void> authorise(const Identity& who, const ClientMessage& message);

bool is_admin(const Identity& who);
bool may_see(const Identity& who, Uid owner);
bool may_change(const Identity& who, Uid owner);

// "alice", and for administrators acting on others "root (administrator)".
std::string who_text(const Identity& who);

}  // namespace gantry::core
