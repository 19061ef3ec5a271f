// Handlers of messages. A handler is a static function `handle` in the .cc file of its group, with
// one row in the list of handlers at the end of the file. authorise() has allowed the request
// before. A handler answers its request exactly once, now or (WaitJobs, ReadLog) later.
//
//   static void handle(Context& ctx, const ClientRequest& request, proto::HoldJobs&& m) { ... }
//   const Subject kHoldMessages{.name = "hold", .handlers = kHandlers<proto::HoldJobs>};
#pragma once

#include <array>
#include <utility>

#include "common/result.h"
#include "ctld/core/request.h"
#include "ctld/core/subject.h"

namespace gantry::core {

template <proto::Listed T>
constexpr Handler on() {
  Handler out{proto::number_of<T>};
  if constexpr (asked_of_core(proto::kRowOf<T>))
    out.of_client = [](Context& ctx, const ClientRequest& request, proto::AnyMessage&& message) {
      handle(ctx, request, std::move(message).get<T>());
    };
  else
    out.of_node = [](Context& ctx, NodeId node, proto::AnyMessage&& message) {
      handle(ctx, node, std::move(message).get<T>());
    };
  return out;
}

template <proto::Listed... T>
inline constexpr std::array kHandlers{on<T>()...};

// Answers a request with an error, and counts it.
void refuse(Context&, const ClientRequest&, const Error&);

}  // namespace gantry::core
