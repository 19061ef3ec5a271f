#include "ctld/rpc/dispatch.h"

#include "common/proto/any/message_codec.h"
#include "common/proto/session.h"

namespace gantry::rpc {
namespace {

template <class Message>
Result<Message> decode_as(std::uint16_t type, std::string_view body) {
  if (!Message::has(type))
    return fail(ErrorCode::unsupported, proto::message_name(type) + " is not decoded here");
  ASSIGN(message, proto::decode_message(type, body));
  return Message::of(std::move(*message));
}

Encoded encode_any(const proto::AnyMessage& message) {
  return {static_cast<std::uint16_t>(message.type()), proto::encode_message(message)};
}

}  // namespace

Result<core::ClientMessage> decode_client(std::uint16_t type, std::string_view body) {
  return decode_as<core::ClientMessage>(type, body);
}

Result<core::ShellMessage> decode_shell(std::uint16_t type, std::string_view body) {
  return decode_as<core::ShellMessage>(type, body);
}

Result<core::NodeMessage> decode_node(std::uint16_t type, std::string_view body) {
  return decode_as<core::NodeMessage>(type, body);
}

Encoded encode_reply(const core::ReplyMessage& message) {
  return encode_any(message);
}
Encoded encode_order(const core::OrderMessage& message) {
  return encode_any(message);
}

Encoded encode_error(const Error& error) {
  return encode_any(proto::ErrorReply{static_cast<std::uint16_t>(error.code), error.message});
}

}  // namespace gantry::rpc
