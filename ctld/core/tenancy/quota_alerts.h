// Quota that fills up: an event when what a tenant uses reaches 70, 85 or 100 % of what it owns,
// for gtenant events and the log. A cell is alerted of again only after it was 5 points below the
// threshold, and not within ten minutes; what was reached before a restart, or by an apply that
// lowered the quota (which shows it), is not told again.
#pragma once

#include "ctld/core/context.h"

namespace gantry::core {

void quota_taken(Context& ctx, std::uint32_t quota_node, std::uint32_t flavor);
void quota_given_back(Context& ctx, std::uint32_t quota_node, std::uint32_t flavor);
// After the quota in use was counted anew: where everybody stands, without an event.
void quota_reckoned(Context& ctx);

}  // namespace gantry::core
