// Hands a message to its handler (ctld/core/handlers.h).
#pragma once

#include "ctld/core/request.h"

namespace gantry::core {

struct Context;

// The message is moved into the handler.
void dispatch(Context& ctx, const ClientRequest& request, ClientMessage& message);
void dispatch(Context& ctx, NodeId node, NodeMessage& message);

}  // namespace gantry::core
