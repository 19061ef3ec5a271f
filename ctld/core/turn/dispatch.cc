#include "ctld/core/turn/dispatch.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

#include "common/assert.h"
#include "ctld/core/context.h"
#include "ctld/core/subject.h"

namespace gantry::core {
namespace {

constexpr std::size_t kNumbers = [] {
  std::size_t most = 0;
  for (const proto::MessageRow& row : proto::kMessages)
    most = std::max(most, static_cast<std::size_t>(row.type));
  return most + 1;
}();

const Handler& handler_of(proto::MessageType type) {
  static const std::array<const Handler*, kNumbers> kByNumber = [] {
    std::array<const Handler*, kNumbers> out{};
    for (const Subject* one : subjects())
      for (const Handler& handler : one->handlers)
        out[static_cast<std::size_t>(handler.type)] = &handler;
    return out;
  }();
  const Handler* found = kByNumber[static_cast<std::size_t>(type)];
  GANTRY_ASSERT(found != nullptr, "sound() looked at this");
  return *found;
}

}  // namespace

void dispatch(Context& ctx, const ClientRequest& request, ClientMessage& message) {
  handler_of(message.type()).of_client(ctx, request, std::move(message));
}

void dispatch(Context& ctx, NodeId node, NodeMessage& message) {
  handler_of(message.type()).of_node(ctx, node, std::move(message));
}

Result<void> sound(std::span<const Subject* const> all) {
  for (const proto::MessageRow& row : proto::kMessages) {
    std::size_t handlers = 0;
    for (const Subject* one : all)
      handlers += std::count_if(one->handlers.begin(), one->handlers.end(),
                                [&](const Handler& h) { return h.type == row.type; });
    const std::size_t wanted = asked_of_core(row) || reported_to_core(row) ? 1 : 0;
    if (handlers != wanted)
      return fail(ErrorCode::internal, fmt::format("the message {} has {} handlers in the core and "
                                                   "must have {}",
                                                   row.name, handlers, wanted));
  }
  return {};
}

}  // namespace gantry::core
