#include "ctld/core/access/front_door.h"

#include "common/proto/any/any_message.h"
#include "common/proto/session.h"
#include "common/text/printable.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/access/check_texts.h"
#include "ctld/core/access/select.h"
#include "ctld/core/access/sight.h"
#include "ctld/core/context.h"
#include "ctld/core/handler.h"
#include "ctld/core/request.h"
#include "ctld/core/runtime.h"

namespace gantry::core {

Result<void> let_in(const State& state, Identity& who, const proto::AnyMessage& message) {
  take_grants(state, who);
  if (auto allowed = authorise(state, who, message); !allowed) return allowed;
  if (auto sound = check_refs(message); !sound) return sound;
  if (auto sound = check_texts(message); !sound) return sound;
  return check_named_nodes(state, who, message);
}

namespace {
// A refusal may repeat a word of the request, whose length only the size of a message limits.
constexpr std::size_t kMostRefusal = 64 << 10;  // bytes
}  // namespace

void refuse(Context& ctx, const ClientRequest& request, const Error& error) {
  ++ctx.rt.stats.refused;
  std::string text = error.message;
  if (text.size() > kMostRefusal)
    text = printable(text.substr(0, kMostRefusal), Lines::many) + " ...";
  ctx.reply(request, proto::ErrorReply{static_cast<std::uint16_t>(error.code), std::move(text)});
}

}  // namespace gantry::core
