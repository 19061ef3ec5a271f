// The checks that every request of a client passes before a handler sees it, whoever answers it.
// The asker gets the roles of the documents (take_grants). Then: may the asker do this (authorise),
// are references and texts sound (check_refs, check_texts), and does the request name nodes that
// the asker does not see (sight.h)?
//
// Both variants are made from the table of messages (common/proto/message_table.h). A message that
// is in neither of them cannot be decoded, so no message avoids these checks.
#pragma once

#include "ctld/core/core.h"

namespace gantry::core {

// Messages that the shell answers itself, or lets other threads answer.
constexpr bool asked_of_shell(const proto::MessageRow& m) {
  return m.taker == proto::Taker::shell;
}
using ShellMessage = proto::MessagesWhere<asked_of_shell>;

Result<void> let_in(const State& state, Identity& who, const ClientMessage& message);
Result<void> let_in(const State& state, Identity& who, const ShellMessage& message);

// The single checks for messages of the shell; those for the core's are in the other headers.
Result<void> authorise(const State& state, const Identity& who, const ShellMessage& message);
Result<void> check_refs(const ShellMessage& message);
Result<void> check_texts(const ShellMessage& message);
Result<void> check_named_nodes(const State& state, const Identity& who,
                               const ShellMessage& message);

}  // namespace gantry::core
