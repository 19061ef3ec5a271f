#include "common/net/router.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>

#include "common/assert.h"
#include "common/net/zap.h"
#include "common/net/zmq_socket.h"

namespace gantry::net {
namespace {

constexpr int kBacklog = 4096;        // connections that wait to be accepted
constexpr int kHandshakeMs = 10'000;  // a connection that says nothing is dropped after this
constexpr int kSpareFiles = 512;      // open files beside the connections
constexpr int kKeepaliveIdle = 60;    // seconds until TCP asks a silent peer whether it is there

// As many open files as the connections need, within what the system lets us have.
void raise_file_limit(int connections) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const auto wanted = static_cast<rlim_t>(connections + kSpareFiles);
  if (limit.rlim_cur >= wanted) return;
  rlimit raised = {wanted, std::max(limit.rlim_max, wanted)};
  if (setrlimit(RLIMIT_NOFILE, &raised) == 0) return;
  raised = {std::min(limit.rlim_max, wanted), limit.rlim_max};
  setrlimit(RLIMIT_NOFILE, &raised);
}

// ZeroMQ wants "*" where others write port 0.
std::string zmq_endpoint(const std::string& endpoint) {
  const bool any = endpoint.starts_with("tcp://") && endpoint.ends_with(":0");
  return any ? endpoint.substr(0, endpoint.size() - 1) + "*" : endpoint;
}

}  // namespace

struct Router::Impl {
  ZmqContext context;
  std::optional<ZapAcceptor> zap;  // ends before the context
  ZmqSocket socket;                // and the socket before both
  std::vector<std::string> endpoints;
  PeerId last_peer;  // messages come in bursts: whose the last one was, and its key
  PublicKey last_key;
};

Router::Router(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Router::Router(Router&&) noexcept = default;
Router& Router::operator=(Router&&) noexcept = default;
Router::~Router() = default;

Result<Router> Router::open(const RouterOptions& options) {
  raise_file_limit(options.max_connections);
  auto impl = std::make_unique<Impl>();
  impl->context.reset(zmq_ctx_new());
  zmq_ctx_set(impl->context.get(), ZMQ_MAX_SOCKETS, options.max_connections);
  auto zap = ZapAcceptor::start(impl->context.get());
  if (!zap) return tl::unexpected(zap.error());
  impl->zap.emplace(std::move(*zap));
  impl->socket.reset(zmq_socket(impl->context.get(), ZMQ_ROUTER));
  if (!impl->socket)
    return fail(ErrorCode::internal, "cannot make a ZeroMQ socket: " + zmq_error());
  const auto set = ZmqOptions(impl->socket.get())
                       .number(ZMQ_LINGER, 0)
                       .number(ZMQ_ROUTER_MANDATORY, 1)
                       .number(ZMQ_CURVE_SERVER, 1)
                       .bytes(ZMQ_CURVE_SECRETKEY, options.keys.secret_key.view())
                       .bytes(ZMQ_ZAP_DOMAIN, "gantry")
                       .number64(ZMQ_MAXMSGSIZE, kMaxFrameBytes)
                       .number(ZMQ_SNDHWM, options.queued_messages)
                       .number(ZMQ_RCVHWM, options.queued_messages)
                       .number(ZMQ_BACKLOG, kBacklog)
                       .number(ZMQ_HANDSHAKE_IVL, kHandshakeMs)
                       .number(ZMQ_IPV6, 1)
                       .number(ZMQ_TCP_KEEPALIVE, 1)
                       .number(ZMQ_TCP_KEEPALIVE_IDLE, kKeepaliveIdle)
                       .result();
  if (!set) return tl::unexpected(set.error());
  for (const std::string& endpoint : options.endpoints) {
    if (zmq_bind(impl->socket.get(), zmq_endpoint(endpoint).c_str()) != 0)
      return fail(ErrorCode::unavailable,
                  fmt::format("cannot listen on {}: {}", endpoint, zmq_error()));
    char bound[1024] = "";
    std::size_t size = sizeof bound;
    zmq_getsockopt(impl->socket.get(), ZMQ_LAST_ENDPOINT, bound, &size);
    impl->endpoints.emplace_back(bound);
  }
  return Router(std::move(impl));
}

std::optional<Incoming> Router::receive() {
  void* socket = impl_->socket.get();
  Incoming message;
  ZmqFrame frame;
  if (!frame.receive(socket)) return std::nullopt;
  message.peer.assign(frame.view());
  while (frame.more()) {
    const bool there = frame.receive(socket);
    GANTRY_ASSERT(there, "ZeroMQ delivers messages whole");
    if (message.frames == 0) {
      if (message.peer != impl_->last_peer) {
        const auto raw = from_hex(frame.property("User-Id"));
        const auto key = public_key_from_bytes(raw ? *raw : std::string());
        GANTRY_ASSERT(key, "a message without its sender's key");
        impl_->last_peer = message.peer;
        impl_->last_key = *key;
      }
      message.key = impl_->last_key;
      message.header.assign(frame.view());
    } else if (message.frames == 1) {
      message.body.assign(frame.view());
    }
    ++message.frames;
  }
  return message;
}

Result<void> Router::send(const PeerId& peer, std::string_view header, std::string_view body) {
  void* socket = impl_->socket.get();
  // Only the first frame can fail: after it the message has its place in the queue.
  switch (send_frame(socket, peer, true)) {
    case SendOutcome::gone:
      return fail(ErrorCode::not_found, "the other side has closed its connection");
    case SendOutcome::full:
      return fail(ErrorCode::limit_exceeded, "the other side does not read its messages");
    case SendOutcome::sent: break;
  }
  send_frame(socket, header, true);
  send_frame(socket, body, false);
  return {};
}

const std::vector<std::string>& Router::endpoints() const {
  return impl_->endpoints;
}
int Router::descriptor() const {
  return zmq_descriptor(impl_->socket.get());
}
bool Router::readable() {
  return zmq_readable(impl_->socket.get());
}

}  // namespace gantry::net
