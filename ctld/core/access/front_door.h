// What every request of a client passes before its handler sees it, whoever answers it: the asker
// becomes what documents make them (take_grants), may they (authorise), are the references and the
// texts sound (check_refs, check_texts), and does it name nodes that they do not see (sight.h).
//
// Both variants are made of the table of messages (common/proto/message_table.h): a message that it
// gives to neither cannot be decoded, so nothing goes round this.
#pragma once

#include "ctld/core/core.h"

namespace gantry::core {

// What the shell answers itself, or lets other threads answer.
constexpr bool asked_of_shell(const proto::MessageRow& m) {
  return m.taker == proto::Taker::shell;
}
using ShellMessage = proto::MessagesWhere<asked_of_shell>;

Result<void> let_in(const State& state, Identity& who, const ClientMessage& message);
Result<void> let_in(const State& state, Identity& who, const ShellMessage& message);

// Its parts for these messages, as for those of the core.
Result<void> authorise(const State& state, const Identity& who, const ShellMessage& message);
Result<void> check_refs(const ShellMessage& message);
Result<void> check_texts(const ShellMessage& message);
Result<void> check_named_nodes(const State& state, const Identity& who,
                               const ShellMessage& message);

}  // namespace gantry::core
