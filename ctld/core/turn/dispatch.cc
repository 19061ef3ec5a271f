// A line of messages.def that says `core` and has no handler does not compile here.
#include "ctld/core/turn/dispatch.h"

#include <utility>

#include "common/proto/any/message_visit.h"
#include "ctld/core/context.h"
#include "ctld/core/handlers.h"
#include "ctld/core/request.h"

namespace gantry::core {

void dispatch(Context& ctx, const ClientRequest& request, ClientMessage& message) {
  proto::visit([&](auto&& m) { handle(ctx, request, std::forward<decltype(m)>(m)); },
               std::move(message));
}

void dispatch(Context& ctx, NodeId node, NodeMessage& message) {
  proto::visit([&](auto&& m) { handle(ctx, node, std::forward<decltype(m)>(m)); },
               std::move(message));
}

}  // namespace gantry::core
