// Decodes a message: the message number selects an alternative of the core's input variants.
#include "ctld/rpc/dispatch.h"

#include "common/codec/codec.h"

namespace gantry::rpc {
namespace {

template <class T>
constexpr std::uint16_t number = static_cast<std::uint16_t>(proto::number_of<T>);

// Compares the number with each alternative in turn; the list is short, and the compiler makes a
// switch of it.
template <class Variant, std::size_t I = 0>
Result<Variant> decode_as(std::uint16_t type, std::string_view body) {
  if constexpr (I == std::variant_size_v<Variant>) {
    return fail(ErrorCode::unsupported, proto::message_name(type) + " is not decoded here");
  } else {
    using T = std::variant_alternative_t<I, Variant>;
    if (type != number<T>) return decode_as<Variant, I + 1>(type, body);
    Result<T> message = codec::decode<T>(body);
    if (!message) {
      return fail(message.error().code, proto::message_name(type) + ": " + message.error().message);
    }
    return Variant(std::in_place_index<I>, std::move(*message));
  }
}

template <class Variant>
Encoded encode_as(const Variant& message) {
  return std::visit(
      [](const auto& m) {
        return Encoded{number<std::decay_t<decltype(m)>>, codec::encode(m)};
      },
      message);
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
