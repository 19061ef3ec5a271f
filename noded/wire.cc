#include "noded/wire.h"

#include "common/codec/codec.h"
#include "common/proto/message_table.h"

namespace gantry::node {

namespace {

template <class T>
constexpr std::uint16_t number() {
  return static_cast<std::uint16_t>(proto::number_of<T>);
}

// The orders are taken from the table of messages. If the table has an order that FromWire lacks,
// this file does not compile.
constexpr bool ordered(const proto::MessageRow& m) {
  return m.kind == proto::MessageKind::order;
}
using Orders = proto::MessagesWhere<ordered>;

template <class T>
bool take(std::uint16_t type, std::string_view body, Result<FromWire>& out) {
  if (type != number<T>()) return false;
  auto message = codec::decode<T>(body);
  if (!message)
    out = tl::unexpected(message.error());
  else if constexpr (std::is_constructible_v<Order, T>)
    out = FromWire(Order(std::move(*message)));
  else
    out = FromWire(std::move(*message));
  return true;
}

template <class... Ts>
bool take_order(std::uint16_t type, std::string_view body, Result<FromWire>& out,
                const std::variant<Ts...>*) {
  return (take<Ts>(type, body, out) || ...);
}

template <class T>
ToWire encode(const T& message) {
  return {net::HeaderBytes({proto::kProtocolVersion, number<T>(), 0}), codec::encode(message)};
}

}  // namespace

Result<FromWire> decode_order(std::string_view header, std::string_view body) {
  ASSIGN(head, net::decode_header(header));
  if (head->protocol < proto::kOldestProtocol || head->protocol > proto::kProtocolVersion)
    return fail(ErrorCode::version_mismatch,
                fmt::format("the controller speaks protocol {}, this node {}", head->protocol,
                            proto::kProtocolVersion));
  Result<FromWire> out =
      fail(ErrorCode::unsupported, fmt::format("message {} is no order to a node", head->type));
  take_order(head->type, body, out, static_cast<const Orders*>(nullptr)) ||
      take<proto::ErrorReply>(head->type, body, out);
  return out;
}

ToWire encode_report(const Report& report) {
  return std::visit([](const auto& message) { return encode(message); }, report);
}

ToWire encode_relay(const proto::NodeRelay& relay) {
  return encode(relay);
}

ToWire encode_relay(const proto::UserRelay& relay) {
  return encode(relay);
}
ToWire encode_relay(const proto::UsersGone& gone) {
  return encode(gone);
}

}  // namespace gantry::node
