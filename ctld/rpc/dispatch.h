// Turns bytes into typed inputs of the core, and typed outputs into bytes, by message number.
//
// The table of messages (common/proto/message_table.h) decides which message is decoded where: see
// ClientMessage, ShellMessage and NodeMessage in ctld/core/request.h. Any other message cannot be
// decoded here.
#pragma once

#include <string_view>
#include <utility>

#include "common/result.h"
#include "ctld/core/request.h"

namespace gantry::rpc {

// The error malformed names the field; unsupported means that the list does not have the number
// (check_sender() refuses such a message earlier, with a clearer text).
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
