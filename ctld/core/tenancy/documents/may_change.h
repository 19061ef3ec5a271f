// Who may change which document. Administrators of the cluster may change all; users of a tenant
// may change its projects, classes, roles and policies, each with the right for it
// (access/roles.h).
#pragma once

#include "common/proto/tenancy.h"
#include "ctld/core/context.h"
#include "ctld/core/request.h"

namespace gantry::core {

// Whether a user who is no administrator may replace the present document by this one.
Result<void> may_change(const Context& ctx, const Identity& who, const tenancy::Document& document);

bool may_remove(const State& state, const Identity& who, const proto::DocumentRef& ref);

}  // namespace gantry::core
