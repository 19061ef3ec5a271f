// Bytes to typed inputs of the core, and typed outputs back to bytes, by number.
//
// The lists are core::ClientMessage, ShellMessage, NodeMessage, ReplyMessage and OrderMessage
// themselves: what is not an alternative there cannot be decoded here, so an unlisted message is
// refused by design.
#pragma once

#include <string_view>
#include <utility>

#include "common/proto/messages.h"
#include "common/result.h"
#include "ctld/core/access/front_door.h"
#include "ctld/core/core.h"

namespace gantry::rpc {

// malformed (naming the field) or unsupported (a number that clients, or nodes, may not send).
Result<core::ClientMessage> decode_client(std::uint16_t type, std::string_view body);
Result<core::NodeMessage> decode_node(std::uint16_t type, std::string_view body);
// Is it one that the shell answers? Then decode_shell(), as decode_client().
bool for_shell(std::uint16_t type);
Result<core::ShellMessage> decode_shell(std::uint16_t type, std::string_view body);

struct Encoded {
  std::uint16_t type = 0;
  Bytes body;
};
Encoded encode_reply(const core::ReplyMessage& message);
Encoded encode_order(const core::OrderMessage& message);
Encoded encode_error(const Error& error);

// "SubmitJob", or "message 999" for numbers that are not in messages.def.
std::string message_name(std::uint16_t type);

}  // namespace gantry::rpc
