// Helps a grun inside a container without a network. Launches are passed on to other nodes. Streams
// are accepted here, and the grun gets one end of a pair for each; a relay has the other end.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "common/codec/codec.h"
#include "common/net/descriptors.h"
#include "common/net/listen.h"
#include "common/net/secure_stream.h"
#include "common/proto/messages.h"
#include "noded/runtime/shim_process.h"
#include "noded/steps/step_service.h"

namespace gantry::node {

namespace {
constexpr Duration kTicketPatience = seconds(10);  // time for the first bytes of a stream

// Makes the socket readable only when this many bytes have come, or no more will.
void set_least(const net::Socket& socket, std::size_t bytes) {
  const int least = static_cast<int>(bytes);
  ::setsockopt(socket.fd(), SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least);
}
}  // namespace

struct StepService::Peer {
  net::Dealer link;
  proto::AttemptKey key;      // the job that asks
  std::size_t bytes = 0;      // bytes of the launch
  std::uint64_t channel = 0;  // channel of the job's socket
  std::uint64_t request = 0;
  std::string node;
  loop::Watch queue, timeout, end;
};

struct StepService::Waiting {
  net::Socket socket;
  loop::Watch readable, timeout;
};

struct StepService::Relay {
  runtime::ShimProcess process;
  loop::Watch ended;
};

StepService::StepService(StepServiceOptions options, loop::Loop& loop, const Logger& log,
                         std::unique_ptr<StepRuntime> runtime, JobSockets& sockets,
                         net::Router router, net::Socket listener, std::string stream_address)
    : options_(std::move(options)),
      loop_(loop),
      log_(log),
      runtime_(std::move(runtime)),
      sockets_(sockets),
      router_(std::move(router)),
      listener_(std::move(listener)),
      stream_address_(std::move(stream_address)),
      most_waiting_(std::clamp<std::size_t>(net::file_limit() / 8, 1, kMaxWaitingStreams)) {
  queue_ = loop_.add_queue(router_, [this] { return receive_one(); });
  accept_ = loop_.on_readable(listener_.fd(), [this] { accept_streams(); });
}

StepService::~StepService() = default;

bool StepService::may_pass_on(const proto::AttemptKey& key, std::size_t bytes,
                              std::size_t nodes) const {
  std::size_t count = 0;
  for (const auto& [id, peer] : peers_) {
    if (peer->key != key) continue;
    ++count;
    bytes += peer->bytes;
  }
  return count < std::max(kMostPassedOn, nodes) && (count == 0 || bytes <= kMostPassedOnBytes);
}

void StepService::pass_on(JobConnection& connection, net::MessageHeader header,
                          const proto::StepNode& node, std::string_view body) {
  const std::uint64_t request = header.request;
  const auto key = net::parse_public_key(node.public_key);
  auto link =
      key ? net::Dealer::open({.endpoint = endpoint_from(options_.listen_host, node.address),
                               .server_key = *key,
                               .keys = options_.keys})
          : Result<net::Dealer>(tl::unexpected(key.error()));
  const net::HeaderBytes out({proto::kProtocolVersion, header.type, request});
  if (link) {
    if (auto sent = link->send(out.view(), body); !sent) link = tl::unexpected(sent.error());
  }
  if (!link) {
    connection.refuse(request, link.error().code, link.error().message);
    return;
  }
  const std::uint64_t id = next_id_++;
  auto peer = std::unique_ptr<Peer>(new Peer{std::move(*link),
                                             connection.key(),
                                             body.size(),
                                             connection.channel(),
                                             request,
                                             node.node,
                                             {},
                                             {},
                                             {}});
  Peer& kept = *peer;
  peers_[id] = std::move(peer);
  kept.queue = loop_.add_queue(kept.link, [this, id] {
    peer_answered(id);
    return false;
  });
  kept.timeout = loop_.after(kPeerTimeout, [this, id] {
    const auto it = peers_.find(id);
    if (JobConnection* waiting = sockets_.find(it->second->channel))
      waiting->refuse(it->second->request, ErrorCode::timed_out,
                      fmt::format("node {} does not answer", it->second->node));
    loop_.post([this, id] { peers_.erase(id); });
  });
}

void StepService::peer_answered(std::uint64_t id) {
  Peer& peer = *peers_.at(id);
  auto reply = peer.link.receive();
  if (!reply || peer.end) return;
  const auto header = net::decode_header(reply->header);
  if (JobConnection* waiting = sockets_.find(peer.channel)) {
    if (header)
      waiting->send({proto::kProtocolVersion, header->type, peer.request}, reply->body);
    else
      waiting->refuse(peer.request, ErrorCode::malformed, header.error().message);
  }
  peer.timeout.cancel();
  peer.end = loop_.after(Duration{}, [this, id] { loop_.post([this, id] { peers_.erase(id); }); });
}

void StepService::accept_streams() {
  for (int n = 0; n < 64; ++n) {
    net::Socket socket(::accept4(listener_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    const bool none_left =
        socket.fd() < 0 ? errno == EMFILE || errno == ENFILE : !net::leaves_room(socket.fd());
    // The connection that has been silent longest is closed to make room: a legitimate one sends
    // its ticket at once.
    if (!waiting_.empty() && (none_left || waiting_.size() >= most_waiting_))
      waiting_.erase(waiting_.begin());
    if (socket.fd() < 0 || none_left) return;
    const std::uint64_t id = next_id_++;
    auto waiting = std::make_unique<Waiting>();
    waiting->socket = std::move(socket);
    // Until the whole hello has arrived there is nothing to do, and checking costs nothing.
    set_least(waiting->socket, net::stream_hello_bytes(kTicketBytes));
    waiting->readable =
        loop_.on_readable(waiting->socket.fd(), [this, id] { stream_readable(id); });
    waiting->timeout = loop_.after(kTicketPatience,
                                   [this, id] { loop_.post([this, id] { waiting_.erase(id); }); });
    waiting_[id] = std::move(waiting);
  }
}

bool StepService::start_relay(JobConnection& grun) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return false;
  net::Socket ours(ends[0]);
  const net::Socket theirs(ends[1]);
  auto process = runtime::start_process({options_.shim_path, "relay"}, theirs.fd(), -1);
  if (!process || !process->pidfd) return false;
  const std::uint64_t id = next_id_++;
  auto relay = std::make_unique<Relay>();
  relay->process = std::move(*process);
  relay->ended = loop_.on_readable(relay->process.pidfd.get(), [this, id] {
    const auto it = relays_.find(id);
    if (it == relays_.end() || !runtime::reap_shim(it->second->process)) return;
    it->second->ended.cancel();
    loop_.post([this, id] { relays_.erase(id); });
  });
  relays_[id] = std::move(relay);
  grun.relay() = std::move(ours);
  return true;
}

bool StepService::hand_stream(JobConnection& grun, const net::Socket& stream) {
  if (grun.relay().fd() < 0 && !start_relay(grun)) return false;
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return false;
  const net::Socket for_job(ends[0]);
  const net::Socket for_relay(ends[1]);
  const int fds[2] = {stream.fd(), for_relay.fd()};
  if (!net::pass_descriptors(grun.relay().fd(), fds, 0)) {
    grun.relay() = {};  // the relay is gone, so the next stream starts another
    return false;
  }
  return grun.pass_descriptor(for_job.fd());
}

// The ticket is peeked at, not removed: the descriptor is passed on with all its bytes.
void StepService::stream_readable(std::uint64_t id) {
  const auto it = waiting_.find(id);
  if (it == waiting_.end()) return;
  Waiting& stream = *it->second;
  char buffer[net::stream_hello_bytes(kTicketBytes)];
  const ssize_t n = ::recv(stream.socket.fd(), buffer, sizeof buffer, MSG_PEEK | MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  // If fewer bytes arrive than a hello has, the other end has closed, or the kernel has no memory
  // for the connection.
  const auto ticket = net::read_ticket({buffer, static_cast<std::size_t>(std::max<ssize_t>(n, 0))});
  if (ticket && *ticket) {
    set_least(stream.socket, 1);
    const auto channel = tickets_.find(**ticket);
    JobConnection* grun = channel == tickets_.end() ? nullptr : sockets_.find(channel->second);
    if (grun != nullptr) {
      stream.readable.cancel();
      if (!hand_stream(*grun, stream.socket))
        log_.write(not_handed_, LogLevel::warning,
                   "a step's stream could not be handed to its grun", {{"job", grun->key().job}});
    }
  }
  loop_.post([this, id] { waiting_.erase(id); });
}

}  // namespace gantry::node
