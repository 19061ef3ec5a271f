#include "common/net/router.h"

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "common/net/router_io.h"
#include "common/net/router_queues.h"

namespace gantry::net {
namespace {

constexpr int kBacklog = 4096;  // connections that wait to be accepted

}  // namespace

struct Router::Impl {
  RouterQueues queues;
  std::deque<RouterEvent> taken;  // events taken from the queues, for the caller
  std::unique_ptr<RouterIo> io;
  std::vector<std::string> endpoints;
  std::size_t queued_messages = 0;
  std::function<void(PeerId)> closed;
  std::thread thread;

  ~Impl() {
    if (!thread.joinable()) return;
    queues.stop();
    thread.join();
  }
};

Router::Router(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Router::Router(Router&&) noexcept = default;
Router& Router::operator=(Router&&) noexcept = default;
Router::~Router() = default;

Result<Router> Router::open(const RouterOptions& options) {
  raise_file_limit(static_cast<std::size_t>(options.max_connections));
  auto impl = std::make_unique<Impl>();
  std::vector<Listening> listening;
  for (const std::string& endpoint : options.endpoints) {
    ASSIGN(one, listen_at(endpoint, kBacklog));
    impl->endpoints.push_back(one->endpoint);
    listening.push_back(std::move(*one));
  }
  impl->queued_messages = static_cast<std::size_t>(options.queued_messages);
  ASSIGN(io, RouterIo::open(options, std::move(listening), impl->queues));
  impl->io = std::move(*io);
  // Signals are handled by the loop's thread. A new thread inherits the mask, so all are blocked
  // here while it starts.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  impl->thread = std::thread([&thread_io = *impl->io] { thread_io.run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return Router(std::move(impl));
}

std::optional<Incoming> Router::receive() {
  while (true) {
    if (impl_->taken.empty()) impl_->taken = impl_->queues.take();
    if (impl_->taken.empty()) return std::nullopt;
    RouterEvent event = std::move(impl_->taken.front());
    impl_->taken.pop_front();
    if (!event.closed) return std::move(event.message);
    if (impl_->closed) impl_->closed(event.message.peer);
  }
}

void Router::on_closed(std::function<void(PeerId)> handler) {
  impl_->closed = std::move(handler);
}

Result<void> Router::send(PeerId peer, std::string_view header, std::string_view body) {
  return impl_->queues.send(peer, header, body, impl_->queued_messages);
}

void Router::set_standing(PeerId peer, Standing standing, const std::string& owner) {
  impl_->queues.command({RouterCommand::Kind::standing, peer, standing, {}, {}, owner});
}

void Router::close(PeerId peer) {
  impl_->queues.command({RouterCommand::Kind::close, peer, {}, {}, {}, {}});
}

std::string Router::address_of(PeerId peer) const {
  return impl_->queues.address_of(peer);
}
const std::vector<std::string>& Router::endpoints() const {
  return impl_->endpoints;
}
int Router::descriptor() const {
  return impl_->queues.caller_bell().fd();
}
bool Router::readable() {
  return !impl_->taken.empty() || !impl_->queues.empty();
}

}  // namespace gantry::net
