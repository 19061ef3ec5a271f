#include "common/net/router_io.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <tuple>

#include "common/assert.h"

namespace gantry::net {
namespace {

constexpr std::uint64_t kBell = 0;             // values in epoll's data
constexpr std::uint64_t kFirstListener = 1;    // one for each listener
constexpr std::uint64_t kFirstPeer = 1 << 10;  // ids of connections begin here
constexpr std::size_t kReadBytes = 256 << 10;  // bytes read from one connection in one turn
// With this much output waiting, nothing more is encrypted.
constexpr std::size_t kSealAhead = 256 << 10;
constexpr int kAcceptsPerTurn = 64;
constexpr int kTickMs = 500;
// Time to write the waiting output of a peer that is to be closed.
constexpr std::chrono::seconds kFarewell{5};

std::chrono::microseconds micro(Duration d) {
  return std::chrono::microseconds(d.us);
}

}  // namespace

struct RouterIo::Connection {
  Connection(std::uint64_t n, Socket&& s, std::string from, const KeyPair& keys,
             Clock::time_point now)
      : id(n),
        socket(std::move(s)),
        network(std::move(from)),
        owner(network),
        engine(keys),
        began(now),
        moved(now) {}
  [[nodiscard]] PeerId peer() const { return PeerId{id}; }
  [[nodiscard]] bool output() const { return !engine.output().empty() || !unsealed.empty(); }

  std::uint64_t id;
  Socket socket;
  std::string network;
  std::string owner;  // see router.h; for a stranger its network
  ZmtpServer engine;
  Clock::time_point began;  // when it was accepted
  Clock::time_point moved;  // when output was last written, or started to wait
  Standing standing = Standing::stranger;
  Strangers::iterator place{};  // its position in strangers_, while it is a stranger
  std::deque<RouterCommand> unsealed;
  std::size_t held = 0;        // its bytes in held_
  std::uint32_t interest = 0;  // the events that epoll watches
  bool shaking = true;         // the handshake is not finished
  bool spoken = false;         // true if it has sent a message
  bool paused = false;         // not read, because enough of its messages wait
  bool leaving = false;        // will be closed when its output is written
  bool gone = false;
};

RouterIo::RouterIo(const RouterOptions& options, std::vector<Listening> listening,
                   RouterQueues& queues, Socket epoll)
    : options_(options),
      listening_(std::move(listening)),
      queues_(queues),
      epoll_(std::move(epoll)),
      next_id_(kFirstPeer),
      buffer_(64 << 10) {}

RouterIo::~RouterIo() {
  for (const Listening& l : listening_)
    if (!l.path.empty()) ::unlink(l.path.c_str());
}

Result<std::unique_ptr<RouterIo>> RouterIo::open(const RouterOptions& options,
                                                 std::vector<Listening> listening,
                                                 RouterQueues& queues) {
  Socket epoll(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kBell;
  if (epoll.fd() < 0 ||
      ::epoll_ctl(epoll.fd(), EPOLL_CTL_ADD, queues.thread_bell().fd(), &event) != 0)
    return fail(ErrorCode::internal, std::string("cannot make an epoll: ") + std::strerror(errno));
  for (std::size_t i = 0; i < listening.size(); ++i) {
    event.data.u64 = kFirstListener + i;
    if (::epoll_ctl(epoll.fd(), EPOLL_CTL_ADD, listening[i].socket.fd(), &event) != 0)
      return fail(ErrorCode::internal,
                  std::string("cannot watch a socket: ") + std::strerror(errno));
  }
  return std::unique_ptr<RouterIo>(
      new RouterIo(options, std::move(listening), queues, std::move(epoll)));
}

RouterIo::Connection* RouterIo::find(std::uint64_t id) {
  const auto it = connections_.find(id);
  return it == connections_.end() ? nullptr : it->second.get();
}

void RouterIo::run() {
  std::array<epoll_event, 256> events;
  while (true) {
    const int n = ::epoll_wait(epoll_.fd(), events.data(), events.size(), kTickMs);
    GANTRY_ASSERT(n >= 0 || errno == EINTR, std::strerror(errno));
    // The flag is read before the commands are fetched, so that everything that was sent before
    // stop() is among them.
    const bool last = queues_.stopping();
    for (int i = 0; i < n; ++i) {
      const std::uint64_t id = events[static_cast<std::size_t>(i)].data.u64;
      if (id >= kFirstPeer) {
        if (Connection* c = find(id)) on_ready(*c, events[static_cast<std::size_t>(i)].events);
      } else if (id >= kFirstListener && !last) {
        accept_some(listening_[id - kFirstListener]);
      }
    }
    carry_out(queues_.commands());
    if (last) break;
    drop_holders();
    look_at_clock();
    closed_.clear();
  }
  while (!connections_.empty()) close(*connections_.begin()->second);
  closed_.clear();
}

void RouterIo::watch_listeners(bool on) {
  if (accepting_ == on) return;
  accepting_ = on;
  for (std::size_t i = 0; i < listening_.size(); ++i) {
    epoll_event event{};
    event.events = on ? static_cast<std::uint32_t>(EPOLLIN) : 0;
    event.data.u64 = kFirstListener + i;
    ::epoll_ctl(epoll_.fd(), EPOLL_CTL_MOD, listening_[i].socket.fd(), &event);
  }
}

void RouterIo::accept_some(const Listening& listening) {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    auto accepted = accept_from(listening);
    if (!accepted) {
      if (accepted.error().code != ErrorCode::limit_exceeded) return;
      // No descriptors are left. A stranger is closed to make room; if there is none, new
      // connections have to wait.
      if (Connection* victim = stranger_of_most())
        close(*victim);
      else
        watch_listeners(false);
      return;
    }
    add(std::move(*accepted));
  }
}

void RouterIo::add(Accepted&& accepted) {
  make_room();
  if (connections_.size() >= static_cast<std::size_t>(options_.max_connections)) return;
  const std::uint64_t id = next_id_++;
  auto made = std::make_unique<Connection>(
      id, std::move(accepted.socket), network_of(accepted.address), options_.keys, Clock::now());
  Connection& c = *made;
  epoll_event event{};
  event.data.u64 = id;
  if (::epoll_ctl(epoll_.fd(), EPOLL_CTL_ADD, c.socket.fd(), &event) != 0) return;
  connections_.emplace(id, std::move(made));
  c.place = strangers_.insert(strangers_.end(), id);
  ++strangers_of_[c.owner];
  ++handshakes_;
  queues_.add_peer(c.peer(), accepted.address);
  write(c);  // sends the greeting
}

// The oldest stranger of the network that has most strangers.
RouterIo::Connection* RouterIo::stranger_of_most() {
  const auto most =
      std::max_element(strangers_of_.begin(), strangers_of_.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == strangers_of_.end()) return nullptr;
  for (const std::uint64_t id : strangers_) {
    Connection* c = find(id);
    if (c->owner == most->first) return c;
  }
  return nullptr;
}

void RouterIo::make_room() {
  const bool full = connections_.size() >= static_cast<std::size_t>(options_.max_connections);
  const bool strange = options_.max_strangers > 0 && strangers_.size() >= options_.max_strangers;
  if (!full && !strange && handshakes_ < kMostHandshakes) return;
  if (Connection* victim = stranger_of_most()) close(*victim);
}

void RouterIo::carry_out(std::vector<RouterCommand>&& commands) {
  std::vector<std::uint64_t> touched;
  for (RouterCommand& command : commands) {
    Connection* c = find(static_cast<std::uint64_t>(command.peer));
    if (c == nullptr) continue;
    switch (command.kind) {
      case RouterCommand::Kind::send:
        if (!c->output()) c->moved = Clock::now();
        c->unsealed.push_back(std::move(command));
        break;
      case RouterCommand::Kind::close:
        c->leaving = true;
        c->paused = false;
        c->moved = Clock::now();
        break;
      case RouterCommand::Kind::standing:
        set_standing(*c, command.standing, std::move(command.owner));
        continue;
      case RouterCommand::Kind::resume: c->paused = false; break;
    }
    if (touched.empty() || touched.back() != c->id) touched.push_back(c->id);
  }
  for (const std::uint64_t id : touched)
    if (Connection* c = find(id)) write(*c);
}

void RouterIo::set_standing(Connection& c, Standing standing, std::string owner) {
  held_ -= c.held;
  if (c.standing == Standing::stranger) {
    held_by_strangers_ -= c.held;
    strangers_.erase(c.place);
    if (--strangers_of_[c.owner] == 0) strangers_of_.erase(c.owner);
  }
  c.held = 0;
  c.standing = standing;
  c.owner = standing == Standing::stranger ? c.network : std::move(owner);
  if (standing == Standing::stranger) {
    c.place = strangers_.insert(strangers_.end(), c.id);
    ++strangers_of_[c.owner];
    c.began = Clock::now();
  }
  count_held(c);
}

void RouterIo::on_ready(Connection& c, std::uint32_t events) {
  // A paused connection is not read, so only this event tells that it has ended.
  if ((events & (EPOLLHUP | EPOLLERR)) != 0 && c.paused) return close(c);
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) read(c);
  if (!c.gone) write(c);
}

void RouterIo::read(Connection& c) {
  if (!c.paused && queues_.hold_back(c.peer())) c.paused = true;
  for (std::size_t taken = 0; taken < kReadBytes && !c.paused;) {
    const auto n = read_some(c.socket.fd(), buffer_.data(), buffer_.size());
    if (!n) return close(c);
    if (*n == 0) break;
    taken += *n;
    // The data is not wanted any more. It is read all the same, because closing a socket with
    // unread bytes may make the peer lose output that it has not read yet.
    if (c.leaving) continue;
    const bool fed = c.engine.feed({buffer_.data(), *n}).has_value();
    if (c.shaking && c.engine.ready()) {
      c.shaking = false;
      --handshakes_;
    }
    take_messages(c);
    if (!fed) return close(c);
    if (*n < buffer_.size()) break;
  }
  count_held(c);
}

void RouterIo::take_messages(Connection& c) {
  std::vector<Incoming> messages;
  while (auto frames = c.engine.next()) {
    Incoming& message = messages.emplace_back();
    message.peer = c.peer();
    message.key = c.engine.peer_key();
    message.frames = static_cast<std::uint32_t>(frames->size());
    message.header = std::move((*frames)[0]);
    if (frames->size() > 1) message.body = std::move((*frames)[1]);
  }
  if (messages.empty()) return;
  c.spoken = true;
  if (queues_.deliver(std::move(messages))) c.paused = true;
}

// Updates the count of bytes in unfinished messages. Nodes are not counted: they are few and
// trusted.
void RouterIo::count_held(Connection& c) {
  const std::size_t now = c.standing == Standing::node ? 0 : c.engine.held_bytes();
  held_ += now - c.held;
  if (c.standing == Standing::stranger) held_by_strangers_ += now - c.held;
  c.held = now;
}

// The connection that holds most, among those of the owner whose connections hold most together.
RouterIo::Connection* RouterIo::holder_of_most(bool strangers_only) {
  std::unordered_map<std::string_view, std::size_t> held_of;
  const auto counts = [&](const Connection& c) {
    return c.held > 0 && (!strangers_only || c.standing == Standing::stranger);
  };
  for (const auto& [id, c] : connections_)
    if (counts(*c)) held_of[c->owner] += c->held;
  Connection* victim = nullptr;
  const auto before = [&](const Connection& a, const Connection& b) {
    const std::size_t of_a = held_of.at(a.owner), of_b = held_of.at(b.owner);
    return std::tie(of_a, a.held, b.id) > std::tie(of_b, b.held, a.id);
  };
  for (const auto& [id, c] : connections_)
    if (counts(*c) && (victim == nullptr || before(*c, *victim))) victim = c.get();
  return victim;
}

void RouterIo::drop_holders() {
  const auto drop = [this](bool strangers_only) {
    Connection* victim = holder_of_most(strangers_only);
    GANTRY_ASSERT(victim != nullptr, "bytes that nobody holds");
    close(*victim);
  };
  while (held_by_strangers_ > kMostHeldByStrangers) drop(true);
  while (held_ > kMostHeld) drop(false);
}

void RouterIo::write(Connection& c) {
  while (true) {
    while (!c.unsealed.empty() && c.engine.output().size() < kSealAhead) {
      RouterCommand message = std::move(c.unsealed.front());
      c.unsealed.pop_front();
      const std::string_view frames[] = {message.header, message.body};
      c.engine.send(frames);
      queues_.sent(c.peer(), message.header, message.body);
    }
    if (c.engine.output().empty()) break;
    const auto n = write_some(c.socket.fd(), c.engine.output());
    if (!n) return close(c);
    if (*n == 0) break;
    c.engine.written(*n);
    if (!c.leaving) c.moved = Clock::now();
  }
  if (c.leaving && !c.output()) ::shutdown(c.socket.fd(), SHUT_WR);  // the peer then closes its end
  watch(c);
}

void RouterIo::watch(Connection& c) {
  const bool waits = c.output();
  std::uint32_t wanted = 0;
  if (!c.paused) wanted |= EPOLLIN;
  if (waits) wanted |= EPOLLOUT;
  if (waits || c.leaving)
    busy_.insert(c.id);
  else
    busy_.erase(c.id);
  if (wanted == c.interest) return;
  c.interest = wanted;
  epoll_event event{};
  event.events = wanted;
  event.data.u64 = c.id;
  const int failed = ::epoll_ctl(epoll_.fd(), EPOLL_CTL_MOD, c.socket.fd(), &event);
  GANTRY_ASSERT(failed == 0, std::strerror(errno));
}

void RouterIo::close(Connection& c) {
  if (c.gone) return;
  c.gone = true;
  held_ -= c.held;
  if (c.standing == Standing::stranger) {
    held_by_strangers_ -= c.held;
    strangers_.erase(c.place);
    if (--strangers_of_[c.owner] == 0) strangers_of_.erase(c.owner);
  }
  if (c.shaking) --handshakes_;
  busy_.erase(c.id);
  queues_.remove_peer(c.peer(), c.spoken);
  c.socket = Socket();
  const auto it = connections_.find(c.id);
  closed_.push_back(std::move(it->second));  // destroyed later, because the caller may still use it
  connections_.erase(it);
  watch_listeners(true);
}

void RouterIo::look_at_clock() {
  const auto now = Clock::now();
  if (now - looked_ < std::chrono::milliseconds(kTickMs)) return;
  looked_ = now;
  watch_listeners(true);
  std::vector<Connection*> late;
  for (const std::uint64_t id : strangers_) {
    Connection* c = find(id);
    const auto age = now - c->began;
    const bool tired = options_.stranger_time.us > 0 && age > micro(options_.stranger_time);
    if (tired || (c->shaking && age > micro(options_.handshake_time))) late.push_back(c);
  }
  for (const std::uint64_t id : busy_) {
    Connection* c = find(id);
    if (now - c->moved > (c->leaving ? kFarewell : micro(options_.stall_time))) late.push_back(c);
  }
  for (Connection* c : late) close(*c);
}

}  // namespace gantry::net
