#include "ctld/core/access/front_door.h"

#include "common/proto/any/any_message.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/access/check_texts.h"
#include "ctld/core/access/select.h"
#include "ctld/core/access/sight.h"
#include "ctld/core/request.h"

namespace gantry::core {

Result<void> let_in(const State& state, Identity& who, const proto::AnyMessage& message) {
  take_grants(state, who);
  if (auto allowed = authorise(state, who, message); !allowed) return allowed;
  if (auto sound = check_refs(message); !sound) return sound;
  if (auto sound = check_texts(message); !sound) return sound;
  return check_named_nodes(state, who, message);
}

}  // namespace gantry::core
