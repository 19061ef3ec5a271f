// Alerts of quota that fills up: an event when a tenant's use reaches 70, 85 or 100 % of what it
// owns, for gtenant events and the log. A cell is reported again only after it was 5 points below
// the threshold, and not twice within ten minutes. A threshold that was reached before a restart is
// not reported again, nor one that an apply reached by lowering the quota (its answer shows that).
#pragma once

#include "ctld/core/context.h"

namespace gantry::core {

void quota_taken(Context& ctx, std::uint32_t quota_node, std::uint32_t flavor);
void quota_given_back(Context& ctx, std::uint32_t quota_node, std::uint32_t flavor);
// Call it after the quota in use was counted anew: notes the levels reached, without events.
void quota_reckoned(Context& ctx);

}  // namespace gantry::core
