#include "common/net/dealer.h"

#include <fmt/core.h>
#include <zmq.h>

#include <algorithm>
#include <cerrno>

#include "common/assert.h"
#include "common/net/header.h"

namespace gantry::net {

struct ZmqContextEnd {
  void operator()(void* context) const { zmq_ctx_term(context); }
};
struct ZmqSocketEnd {
  void operator()(void* socket) const { zmq_close(socket); }
};
using ZmqContext = std::unique_ptr<void, ZmqContextEnd>;
using ZmqSocket = std::unique_ptr<void, ZmqSocketEnd>;

namespace {

constexpr const char* kLinkEvents = "inproc://link";

int as_ms(Duration d) {
  return static_cast<int>(std::clamp<std::int64_t>(d.us / 1000, 1, 3'600'000));
}

std::string zmq_error() {
  return zmq_strerror(zmq_errno());
}

// A frame that closes itself.
class ZmqFrame {
 public:
  ZmqFrame() { zmq_msg_init(&message_); }
  ZmqFrame(const ZmqFrame&) = delete;
  ZmqFrame& operator=(const ZmqFrame&) = delete;
  ~ZmqFrame() { zmq_msg_close(&message_); }
  // Receives a frame; returns false if there is none now.
  bool receive(void* socket);
  [[nodiscard]] bool more() const { return zmq_msg_more(&message_) != 0; }
  [[nodiscard]] std::string_view view() const;

 private:
  mutable zmq_msg_t message_;
};

// Sets options one by one and remembers the first failure.
class ZmqOptions {
 public:
  explicit ZmqOptions(void* socket) : socket_(socket) {}
  ZmqOptions& number(int option, int value);
  ZmqOptions& number64(int option, std::int64_t value);
  ZmqOptions& bytes(int option, std::string_view value);
  [[nodiscard]] Result<void> result() const;

 private:
  void note(int option, int failed);
  void* socket_;
  int failed_option_ = 0;
  int error_ = 0;
};

bool ZmqFrame::receive(void* socket) {
  while (true) {
    if (zmq_msg_recv(&message_, socket, ZMQ_DONTWAIT) >= 0) return true;
    if (zmq_errno() == EINTR) continue;
    GANTRY_ASSERT(zmq_errno() == EAGAIN, zmq_error());
    return false;
  }
}

std::string_view ZmqFrame::view() const {
  return {static_cast<const char*>(zmq_msg_data(&message_)), zmq_msg_size(&message_)};
}

void ZmqOptions::note(int option, int failed) {
  if (failed == 0 || error_ != 0) return;
  failed_option_ = option;
  error_ = zmq_errno();
}
ZmqOptions& ZmqOptions::number(int option, int value) {
  note(option, zmq_setsockopt(socket_, option, &value, sizeof value));
  return *this;
}
ZmqOptions& ZmqOptions::number64(int option, std::int64_t value) {
  note(option, zmq_setsockopt(socket_, option, &value, sizeof value));
  return *this;
}
ZmqOptions& ZmqOptions::bytes(int option, std::string_view value) {
  note(option, zmq_setsockopt(socket_, option, value.data(), value.size()));
  return *this;
}
Result<void> ZmqOptions::result() const {
  if (error_ == 0) return {};
  return fail(ErrorCode::internal,
              fmt::format("ZeroMQ refuses option {}: {}", failed_option_, zmq_strerror(error_)));
}

// Sends one frame without blocking; returns false if the queue is full. Any error other than "would
// block" and "no such peer" is a bug in Gantry.
bool send_frame(void* socket, std::string_view frame, bool more) {
  const int flags = ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0);
  while (zmq_send(socket, frame.data(), frame.size(), flags) < 0) {
    if (zmq_errno() == EINTR) continue;
    GANTRY_ASSERT(zmq_errno() == EAGAIN || zmq_errno() == EHOSTUNREACH, zmq_error());
    return false;
  }
  return true;
}

bool zmq_readable(void* socket) {
  int events = 0;
  std::size_t size = sizeof events;
  while (zmq_getsockopt(socket, ZMQ_EVENTS, &events, &size) != 0)
    GANTRY_ASSERT(zmq_errno() == EINTR, zmq_error());
  return (events & ZMQ_POLLIN) != 0;
}

int zmq_descriptor(void* socket) {
  int fd = -1;
  std::size_t size = sizeof fd;
  const int failed = zmq_getsockopt(socket, ZMQ_FD, &fd, &size);
  GANTRY_ASSERT(failed == 0, zmq_error());
  return fd;
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
    // Each event is two frames; only the end of a connection is subscribed.
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
  // Pings detect that the controller's host is dead; its router answers them.
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
  if (!send_frame(socket, header, true))
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
