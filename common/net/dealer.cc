#include "common/net/dealer.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/assert.h"
#include "common/net/header.h"
#include "common/net/zmq_socket.h"

namespace gantry::net {
namespace {

constexpr const char* kLinkEvents = "inproc://link";

int as_ms(Duration d) {
  return static_cast<int>(std::clamp<std::int64_t>(d.us / 1000, 1, 3'600'000));
}

}  // namespace

struct Dealer::Impl {
  // The events of the connection, which ZeroMQ sends to a socket of their own.
  class LinkEvents final : public loop::QueueSource {
   public:
    Result<void> open(void* context, void* watched) {
      if (zmq_socket_monitor(watched, kLinkEvents, ZMQ_EVENT_DISCONNECTED) != 0)
        return fail(ErrorCode::internal, "cannot watch a ZeroMQ socket: " + zmq_error());
      socket_.reset(zmq_socket(context, ZMQ_PAIR));
      if (!socket_ || zmq_connect(socket_.get(), kLinkEvents) != 0)
        return fail(ErrorCode::internal, "cannot watch a ZeroMQ socket: " + zmq_error());
      return {};
    }
    [[nodiscard]] bool is_open() const { return socket_ != nullptr; }
    // Each event is two frames; the only kind that is asked for is the end of a connection.
    bool take() {
      ZmqFrame frame;
      if (!socket_ || !frame.receive(socket_.get())) return false;
      while (frame.more() && frame.receive(socket_.get())) {
      }
      return true;
    }
    [[nodiscard]] int descriptor() const override { return zmq_descriptor(socket_.get()); }
    [[nodiscard]] bool readable() override { return zmq_readable(socket_.get()); }

   private:
    ZmqSocket socket_;
  };

  ZmqContext context;
  ZmqSocket socket;
  LinkEvents events;
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

Result<loop::QueueSource*> Dealer::watch_link() {
  if (!impl_->events.is_open()) TRY(impl_->events.open(impl_->context.get(), impl_->socket.get()));
  return &impl_->events;
}

bool Dealer::link_ended() {
  return impl_->events.take();
}

int Dealer::descriptor() const {
  return zmq_descriptor(impl_->socket.get());
}
bool Dealer::readable() {
  return zmq_readable(impl_->socket.get());
}

}  // namespace gantry::net
