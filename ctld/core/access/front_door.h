// The checks that every request of a client passes before a handler sees it, whoever answers it.
// The asker gets the roles of the documents (take_grants). Then: may the asker do this (authorise),
// are references and texts sound (check_refs, check_texts), and does the request name nodes that
// the asker does not see (sight.h)?
//
// ClientMessage and ShellMessage (ctld/core/request.h) follow from the table of messages. A message
// that is in neither of them cannot be decoded, so no message avoids these checks.
#pragma once

#include "common/proto/any/any_message.h"
#include "common/result.h"
#include "ctld/core/request.h"

namespace gantry::core {

struct State;

Result<void> let_in(const State& state, Identity& who, const proto::AnyMessage& message);

}  // namespace gantry::core
