// Limits of a Router: no peer can act in another one's name, and no peer can use memory or time
// without bounds.
#include <doctest/doctest.h>

#include <sys/resource.h>

#include <map>
#include <set>
#include <vector>

#include "common/net/client.h"
#include "common/net/router.h"
#include "common/net/router_queues.h"
#include "tests/skip.h"
#include "tests/wire/raw_dealer.h"

namespace gantry::net {
namespace {

using test::RawDealer;
constexpr Duration kSoon = seconds(60);
constexpr std::size_t kMiB = 1 << 20;

struct Server {
  KeyPair keys = generate_key_pair();
  Router router;
  std::set<PeerId> closed;

  explicit Server(RouterOptions options = {}) : router(open(std::move(options))) {
    router.on_closed([this](PeerId peer) { closed.insert(peer); });
  }
  Router open(RouterOptions options) const {
    options.endpoints = {"tcp://127.0.0.1:0"};
    options.keys = keys;
    auto made = Router::open(options);
    REQUIRE_MESSAGE(made, made.error().message);
    return std::move(*made);
  }
  [[nodiscard]] std::string address() const { return router.endpoints()[0]; }
  RawDealer dealer(const std::string& id = "") const {
    return RawDealer(address(), keys.public_key, id);
  }
  Incoming next() {
    const Deadline deadline(kSoon);
    while (true) {
      if (auto message = router.receive()) return *message;
      REQUIRE(wait_for(router.descriptor(), Wait::read, deadline));
    }
  }
  // Waits until a peer has gone, and drops all messages that come meanwhile.
  void wait_closed(PeerId peer) {
    const Deadline deadline(kSoon);
    while (!closed.contains(peer)) {
      if (!router.receive() && !closed.contains(peer))
        REQUIRE(wait_for(router.descriptor(), Wait::read, deadline));
    }
  }
};

TEST_CASE("an answer goes only to the connection that asked, whatever id a later one claims") {
  Server server;
  std::set<PeerId> peers;
  PeerId gone{};
  {
    RawDealer asker = server.dealer("name");
    REQUIRE(asker.send("h", "question"));
    const Incoming question = server.next();
    gone = question.peer;
    CHECK(question.key == asker.key());
    CHECK(server.router.address_of(gone) == "127.0.0.1");
  }
  server.wait_closed(gone);
  RawDealer stranger = server.dealer("name");
  // Both peers are served, because the routing id means nothing.
  RawDealer twin = server.dealer("name");
  for (RawDealer* one : {&stranger, &twin}) {
    REQUIRE(one->send("h", "x"));
    const Incoming message = server.next();
    CHECK(message.key == one->key());
    CHECK(message.peer != gone);
    CHECK(peers.insert(message.peer).second);
    REQUIRE(server.router.send(message.peer, "h", "yours"));
    CHECK(one->receive()->at(1) == "yours");
  }
  CHECK(server.router.send(gone, "h", "secret").error().code == ErrorCode::not_found);
  CHECK(server.router.address_of(gone).empty());
  CHECK_FALSE(stranger.receive(milliseconds(100)));
}

TEST_CASE("unfinished bytes of strangers are bounded, and a newcomer is served") {
  Server server;
  std::vector<RawDealer> holders;
  for (int i = 0; i < 8; ++i) {
    RawDealer& one = holders.emplace_back(server.dealer());
    CHECK(one.send_part(15 * kMiB, 15 * kMiB - 100));
  }
  RawDealer honest = server.dealer();
  REQUIRE(honest.send("h", "b"));
  CHECK(server.next().body == "b");
  int left = 0;
  for (RawDealer& one : holders) {
    (void)one.receive(milliseconds(20));
    if (one.connected()) ++left;
  }
  CHECK(left <= static_cast<int>(kMostHeldByStrangers / (15 * kMiB - 100)));
  CHECK(left > 0);
}

TEST_CASE("a peer that does not read has at most a few megabytes of answers waiting") {
  Server server;
  RawDealer lazy = server.dealer();
  REQUIRE(lazy.send("h", "b"));
  const PeerId peer = server.next().peer;
  Result<void> sent;
  std::size_t bytes = 0;
  for (; sent && bytes < 400 * kMiB; bytes += 4 * kMiB)
    sent = server.router.send(peer, "h", std::string(4 * kMiB, 'x'));
  REQUIRE_FALSE(sent);
  CHECK(sent.error().code == ErrorCode::limit_exceeded);
  CHECK(server.router.send(peer, "h", std::string(kMaxFrameBytes + 1, 'x')).error().code ==
        ErrorCode::invalid_argument);
  server.router.close(peer);
  CHECK(lazy.receive());  // Answers that wait are still written.
  for (int i = 0; i < 200 && lazy.receive(); ++i) {
  }
  CHECK_FALSE(lazy.connected());
  server.wait_closed(peer);
}

TEST_CASE("a peer that never reads is cut off after the stall time") {
  RouterOptions options;
  options.stall_time = milliseconds(300);
  Server server(options);
  RawDealer lazy = server.dealer();
  REQUIRE(lazy.send("h", "b"));
  const PeerId peer = server.next().peer;
  for (int i = 0; i < 4; ++i) REQUIRE(server.router.send(peer, "h", std::string(8 * kMiB, 'x')));
  server.wait_closed(peer);
}

TEST_CASE("strangers make room for newcomers, and are cut off after their time") {
  RouterOptions options;
  options.max_strangers = 10;
  options.stranger_time = seconds(2);
  Server server(options);
  RawDealer known = server.dealer();
  REQUIRE(known.send("h", "b"));
  const PeerId peer = server.next().peer;
  server.router.set_standing(peer, Standing::known);
  std::vector<RawDealer> strangers;
  for (int i = 0; i < 30; ++i) {
    strangers.push_back(server.dealer());
    CHECK(strangers.back().connected());
  }
  int left = 0;
  for (RawDealer& one : strangers) {
    (void)one.receive(milliseconds(10));
    if (one.connected()) ++left;
  }
  CHECK(left <= 10);
  // This waits until the peer is cut off.
  for (RawDealer& one : strangers) (void)one.receive(kSoon);
  for (RawDealer& one : strangers) CHECK_FALSE(one.connected());
  REQUIRE(known.send("h", "still there"));
  CHECK(server.next().body == "still there");
}

TEST_CASE("handshakes that do not go on keep nobody out") {
  rlimit limit = {};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  constexpr rlim_t kFiles = 2 * kMostHandshakes + 1'000;
  if (limit.rlim_max < kFiles) SKIP_CASE("too few open files are allowed");
  limit.rlim_cur = std::max(limit.rlim_cur, kFiles);
  REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  RouterOptions options;
  options.max_connections = 4'096;
  Server server(options);
  std::vector<Socket> half;
  for (std::size_t i = 0; i < kMostHandshakes + 300; ++i) {
    auto one = connect_to(server.address(), Deadline(kSoon));
    REQUIRE(one);
    (void)write_some(one->fd(), zmtp::greeting(false));
    half.push_back(std::move(*one));
  }
  RawDealer honest = server.dealer();
  REQUIRE(honest.connected());
  REQUIRE(honest.send("h", "b"));
  CHECK(server.next().body == "b");
}

TEST_CASE("a peer may send little before its handshake, and no too large message after it") {
  Server server;
  auto raw = connect_to(server.address(), Deadline(kSoon));
  REQUIRE(raw);
  std::string huge = zmtp::greeting(false);
  zmtp::append_frame(huge, true, std::string(4'000, 'x'));
  REQUIRE(write_some(raw->fd(), huge));
  char buffer[256];
  Result<std::size_t> n = std::size_t{0};
  while (n) {
    n = read_some(raw->fd(), buffer, sizeof buffer);
    if (n && *n == 0) REQUIRE(wait_for(raw->fd(), Wait::read, Deadline(kSoon)));
  }
  CHECK(n.error().code == ErrorCode::unavailable);  // The connection is closed.
  // Each of the two frames is allowed, but not both in one message.
  RawDealer big = server.dealer();
  (void)big.send(std::string(10 * kMiB, 'x'), std::string(10 * kMiB, 'x'));
  CHECK_FALSE(big.receive());
  CHECK_FALSE(big.connected());
}

TEST_CASE("one peer's messages wait while another peer's are taken") {
  Server server;
  RawDealer loud = server.dealer();
  RawDealer quiet = server.dealer();
  for (int i = 0; i < 3 * static_cast<int>(kMostWaiting); ++i) REQUIRE(loud.send("h", "loud"));
  REQUIRE(quiet.send("h", "quiet"));
  int before = 0;
  while (server.next().body == "loud") ++before;
  CHECK(before <= 2 * static_cast<int>(kMostWaiting));
  for (int i = before; i < 3 * static_cast<int>(kMostWaiting); ++i)
    CHECK(server.next().body == "loud");  // No message is lost.
}

// Makes `count` peers of the server that belong to the same owner.
std::vector<RawDealer> peers_of(Server& server, const std::string& owner, int count) {
  std::vector<RawDealer> out;
  for (int i = 0; i < count; ++i) {
    REQUIRE(out.emplace_back(server.dealer()).send("h", "b"));
    server.router.set_standing(server.next().peer, Standing::known, owner);
  }
  return out;
}

TEST_CASE("forty connections of one user do not keep another user's message waiting") {
  Server server;
  auto loud = peers_of(server, "uid 1", 40);
  auto quiet = peers_of(server, "uid 2", 1);
  constexpr int kEach = 1'000;  // This is fewer than one connection may have waiting.
  for (RawDealer& one : loud)
    for (int i = 0; i < kEach; ++i) REQUIRE(one.send("h", "loud"));
  REQUIRE(quiet[0].send("h", "quiet"));
  int before = 0;
  while (server.next().body == "loud") ++before;
  CHECK(before <= 3 * static_cast<int>(kMostWaitingOfOwner));
  // No message is lost.
  for (int i = before; i < 40 * kEach; ++i) CHECK(server.next().body == "loud");
}

TEST_CASE("unfinished messages on many connections of one user end none of another user") {
  Server server;
  auto honest = peers_of(server, "uid 2", 1);
  auto many = peers_of(server, "uid 1", 130);
  // The beginning of a frame of 15 MiB, with `bytes` bytes of content.
  const auto begin = [](std::size_t bytes) {
    return "\x02" + zmtp::eight(15 * kMiB) + std::string(bytes, 'x');
  };
  REQUIRE(honest[0].write(begin(4 * kMiB)));
  for (RawDealer& one : many) (void)one.write(begin(2 * kMiB + kMiB / 8));
  int left = 130;
  // The loop waits until the server has read it.
  for (int tries = 0; tries < 20 && left == 130; ++tries) {
    left = 0;
    for (RawDealer& one : many) {
      (void)one.receive(milliseconds(5));
      if (one.connected()) ++left;
    }
  }
  CHECK(left < 130);
  CHECK(left > 100);
  CHECK_FALSE(honest[0].receive(milliseconds(20)));
  CHECK(honest[0].connected());
}

TEST_CASE("unread answers of one user take no room from nodes and other users") {
  RouterQueues queues(
      {.peer = 40'000, .node = 60'000, .owner = 80'000, .in_all = 150'000, .fair = 4'000});
  const auto add = [&](std::uint64_t id, Standing standing, const std::string& owner) {
    queues.add_peer(PeerId{id}, "10.0.0." + std::to_string(id));
    queues.command({RouterCommand::Kind::standing, PeerId{id}, standing, {}, {}, owner});
  };
  for (std::uint64_t id = 1; id <= 5; ++id) add(id, Standing::known, "uid 1");
  add(6, Standing::known, "uid 2");
  add(7, Standing::node, "");
  // The result is how many thousand bytes may wait for this peer.
  const auto fill = [&](std::uint64_t id) {
    int n = 0;
    while (queues.send(PeerId{id}, "", Bytes(840, 'x'), 1'000)) ++n;
    return n;
  };
  CHECK(fill(1) == 40);
  CHECK(fill(2) == 40);
  // This user has 80,000 bytes waiting already.
  for (std::uint64_t id = 3; id <= 5; ++id) CHECK(fill(id) == 4);
  CHECK(fill(6) == 40);
  for (std::uint64_t id = 8; id <= 9; ++id) add(id, Standing::known, "uid 3");
  // All users together then have 150,000 bytes waiting, and each peer may still have a little.
  CHECK(fill(8) == 18);
  CHECK(fill(9) == 4);
  CHECK(fill(7) == 60);  // orders of a node are still accepted
  queues.remove_peer(PeerId{1}, false);
  queues.remove_peer(PeerId{2}, false);
  // Two peers have freed 80 of the 214 thousand bytes in use, so 16 of 150 are free.
  CHECK(fill(3) == 16);
}

TEST_CASE("all addresses of one host count as one network") {
  CHECK(network_of("10.0.0.7") == "10.0.0.7");
  CHECK(network_of("local") == "local");
  CHECK(network_of("2001:db8:1:2:3::1") == network_of("2001:db8:1:2::ffff"));
  CHECK(network_of("2001:db8:1:2::1") != network_of("2001:db8:1:3::1"));
  CHECK(network_of("fe80::1%eth0") == network_of("fe80::2%eth0"));
}

}  // namespace
}  // namespace gantry::net
