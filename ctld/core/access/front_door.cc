#include "ctld/core/access/front_door.h"

#include "ctld/core/access/authorise.h"
#include "ctld/core/access/check_texts.h"
#include "ctld/core/access/select.h"
#include "ctld/core/access/sight.h"

namespace gantry::core {
namespace {

template <class Message>
Result<void> pass(const State& state, Identity& who, const Message& message) {
  take_grants(state, who);
  if (auto allowed = authorise(state, who, message); !allowed) return allowed;
  if (auto sound = check_refs(message); !sound) return sound;
  if (auto sound = check_texts(message); !sound) return sound;
  return check_named_nodes(state, who, message);
}

}  // namespace

Result<void> let_in(const State& state, Identity& who, const ClientMessage& message) {
  return pass(state, who, message);
}
Result<void> let_in(const State& state, Identity& who, const ShellMessage& message) {
  return pass(state, who, message);
}

}  // namespace gantry::core
