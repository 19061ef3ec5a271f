// Alerts about quota that fills up: an event when a tenant's use reaches 70, 85 or 100 % of its own
// quota, for gtenant events and the log. A cell (resource and flavor) is reported again only after
// its use was 5 points below the threshold, and not twice within ten minutes. A threshold that was
// reached before a restart is not reported again, nor one that an apply reached by lowering the
// quota (its answer shows that).
#pragma once

#include "ctld/core/context.h"

namespace gantry::core {

void quota_taken(Context& ctx, std::uint32_t quota_node, std::uint32_t flavor);
void quota_given_back(Context& ctx, std::uint32_t quota_node, std::uint32_t flavor);
// Call it after the quota in use was counted again: notes the levels reached, without events.
void quota_reckoned(Context& ctx);

}  // namespace gantry::core
