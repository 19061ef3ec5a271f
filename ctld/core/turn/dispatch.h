// Hands a message to its handler (ctld/core/handler.h).
#pragma once

#include "ctld/core/request.h"

namespace gantry::sched {
struct Plan;
}

namespace gantry::core {

struct Context;

// The message is moved into the handler.
void dispatch(Context& ctx, const ClientRequest& request, ClientMessage& message);
void dispatch(Context& ctx, NodeId node, NodeMessage& message);

// plan_apply.cc: starts the jobs that the plan starts, as far as they still fit.
void apply_plan(Context&, sched::Plan&&);

}  // namespace gantry::core
