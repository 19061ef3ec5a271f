// The node's side of the wire: turns bytes into orders, and reports into bytes, by the numbers of
// messages.def. Only messages that the table calls orders can be decoded here, and ErrorReply.
#pragma once

#include <string_view>
#include <variant>

#include "common/net/header.h"
#include "common/proto/control.h"
#include "common/proto/node_relay.h"
#include "common/proto/session.h"
#include "common/result.h"
#include "noded/core/core.h"

namespace gantry::node {

using FromWire = std::variant<Order, proto::RelayReply, proto::ErrorReply, proto::RereadConfig>;

// malformed, unsupported, or version_mismatch.
Result<FromWire> decode_order(std::string_view header, std::string_view body);

struct ToWire {
  net::HeaderBytes header;
  Bytes body;
};
ToWire encode_report(const Report& report);
ToWire encode_relay(const proto::NodeRelay& relay);
ToWire encode_relay(const proto::UserRelay& relay);
ToWire encode_relay(const proto::UsersGone& gone);

}  // namespace gantry::node
