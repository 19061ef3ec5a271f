// Decodes a message: its number selects the struct.
#include "ctld/rpc/dispatch.h"

#include "common/codec/codec.h"
#include "common/proto/any/message_visit.h"
#include "ctld/core/request.h"

namespace gantry::rpc {
namespace {

template <class T>
constexpr std::uint16_t number = static_cast<std::uint16_t>(proto::number_of<T>);

template <bool (*wanted)(const proto::MessageRow&), class T>
Result<proto::OneOf<wanted>> decode_one(std::uint16_t type, std::string_view body) {
  Result<T> message = codec::decode<T>(body);
  if (!message)
    return fail(message.error().code, proto::message_name(type) + ": " + message.error().message);
  return proto::OneOf<wanted>(std::move(*message));
}

template <bool (*wanted)(const proto::MessageRow&)>
Result<proto::OneOf<wanted>> decode_as(std::uint16_t type, std::string_view body) {
  switch (static_cast<proto::MessageType>(type)) {
#define X(name, ...)                                      \
  case proto::MessageType::name:                          \
    if constexpr (wanted(proto::kRowOf<proto::name>))     \
      return decode_one<wanted, proto::name>(type, body); \
    break;
#include "common/proto/messages.def"
#undef X
  }
  return fail(ErrorCode::unsupported, proto::message_name(type) + " is not decoded here");
}

template <class Message>
Encoded encode_as(const Message& message) {
  return {static_cast<std::uint16_t>(message.type()),
          proto::visit([](const auto& m) { return codec::encode(m); }, message)};
}

}  // namespace

Result<core::ClientMessage> decode_client(std::uint16_t type, std::string_view body) {
  return decode_as<core::asked_of_core>(type, body);
}

Result<core::ShellMessage> decode_shell(std::uint16_t type, std::string_view body) {
  return decode_as<core::asked_of_shell>(type, body);
}

Result<core::NodeMessage> decode_node(std::uint16_t type, std::string_view body) {
  return decode_as<core::reported_to_core>(type, body);
}

Encoded encode_reply(const core::ReplyMessage& message) {
  return encode_as(message);
}

Encoded encode_order(const core::OrderMessage& message) {
  return encode_as(message);
}

Encoded encode_error(const Error& error) {
  return {number<proto::ErrorReply>,
          codec::encode(proto::ErrorReply{static_cast<std::uint16_t>(error.code), error.message})};
}

}  // namespace gantry::rpc
