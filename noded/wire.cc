#include "noded/wire.h"

#include <algorithm>

#include "common/codec/codec.h"
#include "common/proto/message_table.h"

namespace gantry::node {

namespace {

template <class T>
Result<FromWire> decode_as(std::string_view body) {
  ASSIGN(message, codec::decode<T>(body));
  if constexpr (std::is_constructible_v<Order, T>)
    return FromWire(std::in_place_type<Order>, std::move(*message));
  else
    return FromWire(std::in_place_type<T>, std::move(*message));
}

struct Row {
  proto::MessageType type;
  Result<FromWire> (*decode)(std::string_view body);
};

template <class... Ts>
constexpr std::array<Row, sizeof...(Ts)> rows() {
  return {Row{proto::number_of<Ts>, decode_as<Ts>}...};
}

constexpr auto kOrders =
    rows<proto::NodeAccept, proto::RegisterAgain, proto::HeartbeatAck, proto::Launch, proto::Go,
         proto::Terminate, proto::SignalAttempt, proto::AckExit, proto::FetchLog,
         proto::TellAttempt, proto::ResumeGpu, proto::Freeze, proto::ProbeAttempt,
         proto::IdentityTokens, proto::LimitStep, proto::RelayReply, proto::RereadConfig>();
constexpr Row kRefusal{proto::number_of<proto::ErrorReply>, decode_as<proto::ErrorReply>};

// True if kOrders has exactly the messages that the table of messages calls orders.
constexpr bool complete() {
  std::size_t orders = 0;
  for (const proto::MessageRow& m : proto::kMessages) {
    if (m.kind != proto::MessageKind::order) continue;
    ++orders;
    if (std::ranges::count(kOrders, m.type, &Row::type) != 1) return false;
  }
  return orders == kOrders.size();
}
static_assert(complete());

template <class T>
ToWire encode(const T& message) {
  return {net::HeaderBytes(
              {proto::kProtocolVersion, static_cast<std::uint16_t>(proto::number_of<T>), 0}),
          codec::encode(message)};
}

}  // namespace

Result<FromWire> decode_order(std::string_view header, std::string_view body) {
  ASSIGN(head, net::decode_header(header));
  if (head->protocol < proto::kOldestProtocol || head->protocol > proto::kProtocolVersion)
    return fail(ErrorCode::version_mismatch,
                fmt::format("the controller speaks protocol {}, this node {}", head->protocol,
                            proto::kProtocolVersion));
  const auto type = static_cast<proto::MessageType>(head->type);
  if (type == kRefusal.type) return kRefusal.decode(body);
  const auto row = std::ranges::find(kOrders, type, &Row::type);
  if (row == kOrders.end())
    return fail(ErrorCode::unsupported,
                fmt::format("message {} is no order to a node", head->type));
  return row->decode(body);
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
