// Turns bytes into typed inputs of the core, and typed outputs into bytes, by message number.
//
// The lists are core::ClientMessage, ShellMessage and NodeMessage, which are made from the table of
// messages (common/proto/message_table.h), and ReplyMessage and OrderMessage. A message that is no
// alternative there cannot be decoded here.
#pragma once

#include <string_view>
#include <utility>

#include "common/proto/message_table.h"
#include "common/result.h"
#include "ctld/core/access/front_door.h"
#include "ctld/core/core.h"

namespace gantry::rpc {

// The error malformed names the field; unsupported means that the list does not have the number
// (check_sender() refuses such a message earlier, with a better sentence).
Result<core::ClientMessage> decode_client(std::uint16_t type, std::string_view body);
Result<core::NodeMessage> decode_node(std::uint16_t type, std::string_view body);
Result<core::ShellMessage> decode_shell(std::uint16_t type, std::string_view body);

struct Encoded {
  std::uint16_t type = 0;
  Bytes body;
};
Encoded encode_reply(const core::ReplyMessage& message);
Encoded encode_order(const core::OrderMessage& message);
Encoded encode_error(const Error& error);

}  // namespace gantry::rpc
