#include "common/net/dealer.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/assert.h"
#include "common/net/header.h"
#include "common/net/zmq_socket.h"

namespace gantry::net {
namespace {

int as_ms(Duration d) {
  return static_cast<int>(std::clamp<std::int64_t>(d.us / 1000, 1, 3'600'000));
}

}  // namespace

struct Dealer::Impl {
  ZmqContext context;
  ZmqSocket socket;
};

Dealer::Dealer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Dealer::Dealer(Dealer&&) noexcept = default;
Dealer& Dealer::operator=(Dealer&&) noexcept = default;
Dealer::~Dealer() = default;

Result<Dealer> Dealer::open(const DealerOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->context.reset(zmq_ctx_new());
  impl->socket.reset(zmq_socket(impl->context.get(), ZMQ_DEALER));
  if (!impl->socket)
    return fail(ErrorCode::internal, "cannot make a ZeroMQ socket: " + zmq_error());
  // Pings detect that the controller's host is dead; ZeroMQ's ROUTER answers them by itself.
  const auto set = ZmqOptions(impl->socket.get())
                       .number(ZMQ_LINGER, 0)
                       .bytes(ZMQ_CURVE_SERVERKEY, options.server_key.view())
                       .bytes(ZMQ_CURVE_PUBLICKEY, options.keys.public_key.view())
                       .bytes(ZMQ_CURVE_SECRETKEY, options.keys.secret_key.view())
                       .number64(ZMQ_MAXMSGSIZE, kMaxFrameBytes)
                       .number(ZMQ_SNDHWM, options.queued_messages)
                       .number(ZMQ_RCVHWM, options.queued_messages)
                       .number(ZMQ_IPV6, 1)
                       .number(ZMQ_RECONNECT_IVL, as_ms(options.reconnect_min))
                       .number(ZMQ_RECONNECT_IVL_MAX, as_ms(options.reconnect_max))
                       .number(ZMQ_HEARTBEAT_IVL, as_ms({options.silence.us / 3}))
                       .number(ZMQ_HEARTBEAT_TIMEOUT, as_ms(options.silence))
                       .result();
  if (!set) return tl::unexpected(set.error());
  if (zmq_connect(impl->socket.get(), options.endpoint.c_str()) != 0)
    return fail(ErrorCode::invalid_argument,
                fmt::format("\"{}\" is no endpoint: {}", options.endpoint, zmq_error()));
  return Dealer(std::move(impl));
}

std::optional<Dealer::Message> Dealer::receive() {
  void* socket = impl_->socket.get();
  ZmqFrame frame;
  if (!frame.receive(socket)) return std::nullopt;
  Message message;
  message.frames = 1;
  message.header.assign(frame.view());
  while (frame.more()) {
    const bool there = frame.receive(socket);
    GANTRY_ASSERT(there, "ZeroMQ delivers messages whole");
    if (message.frames == 1) message.body.assign(frame.view());
    ++message.frames;
  }
  return message;
}

Result<void> Dealer::send(std::string_view header, std::string_view body) {
  void* socket = impl_->socket.get();
  if (header.size() > kMaxFrameBytes || body.size() > kMaxFrameBytes)
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("a message of {} bytes; at most {} are sent", body.size(), kMaxFrameBytes));
  if (send_frame(socket, header, true) != SendOutcome::sent)
    return fail(ErrorCode::limit_exceeded, "too many messages wait for the controller");
  send_frame(socket, body, false);
  return {};
}

int Dealer::descriptor() const {
  return zmq_descriptor(impl_->socket.get());
}
bool Dealer::readable() {
  return zmq_readable(impl_->socket.get());
}

}  // namespace gantry::net
