// What comes to the core from outside, and who sends it; and what the core answers. The messages
// themselves are in common/proto, and only declared here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/job/placement.h"
#include "common/proto/any/any_message.h"
#include "common/proto/attempt.h"
#include "common/proto/session.h"
#include "common/time/time.h"
#include "common/types.h"

namespace gantry::core {

using ConnectionId = Id<struct ConnectionTag>;  // given by the shell, never reused

struct Identity {  // established when the shell authenticated the sender
  Owner owner;
  proto::Role role = proto::Role::user;
  std::optional<proto::AttemptKey> inside;  // request came from inside this job
  std::vector<std::string> groups;          // names of the operating system's groups
  std::optional<Instant> token_ends;        // the token that identified the user is valid until
                                            // then
  bool by_login_node = false;  // a login node vouches for the user; see needs_credential()
};

constexpr bool asked_of_core(const proto::MessageRow& m) {
  return m.taker == proto::Taker::core && m.from.has(proto::Sender::client);
}
constexpr bool reported_to_core(const proto::MessageRow& m) {
  return m.taker == proto::Taker::core && m.from.has(proto::Sender::node);
}
// Messages that the shell answers itself, or lets other threads answer.
constexpr bool asked_of_shell(const proto::MessageRow& m) {
  return m.taker == proto::Taker::shell;
}
constexpr bool answered(const proto::MessageRow& m) {
  return m.kind == proto::MessageKind::reply && m.from.has(proto::Sender::controller);
}
constexpr bool ordered(const proto::MessageRow& m) {
  return m.kind == proto::MessageKind::order;
}
using ClientMessage = proto::OneOf<asked_of_core>;
using NodeMessage = proto::OneOf<reported_to_core>;
using ShellMessage = proto::OneOf<asked_of_shell>;
using ReplyMessage = proto::OneOf<answered>;
using OrderMessage = proto::OneOf<ordered>;

struct ClientRequest {
  ConnectionId connection;
  std::uint64_t request = 0;
  Identity who;
  ClientMessage message;
};

}  // namespace gantry::core
