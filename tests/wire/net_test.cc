// The transport with real peers: Gantry's client and libzmq's DEALER against Gantry's router, and
// libzmq's ROUTER against Gantry's client. The tests also check that no end is disturbed by wrong
// keys, garbage, half handshakes or oversized messages.
#include <doctest/doctest.h>

#include <fmt/core.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <thread>

#include "common/net/client.h"
#include "common/net/dealer.h"
#include "common/net/header.h"
#include "common/net/router.h"
#include "common/net/socket.h"

namespace gantry::net {
namespace {

constexpr Duration kSoon = seconds(60);

// libzmq is not instrumented, so ThreadSanitizer reports every word of a message as a race. Its
// time for this grows with the square of the message size.
#ifdef __SANITIZE_THREAD__
constexpr std::size_t kLargest = 4'000;
#else
constexpr std::size_t kLargest = 16'777'100;
#endif

struct TempDir {
  std::string path;
  TempDir() {
    char name[] = "/tmp/gantry-net-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    path = name;
  }
  ~TempDir() { std::filesystem::remove_all(path); }
};

// A server that answers on its own thread until it is destroyed. The answer has the same header and
// body. The body "who am I" is answered with the key of the sender.
class EchoServer {
 public:
  explicit EchoServer(std::vector<std::string> endpoints = {"tcp://127.0.0.1:0"})
      : keys_(generate_key_pair()) {
    auto router = Router::open({.endpoints = std::move(endpoints), .keys = keys_});
    REQUIRE_MESSAGE(router, router.error().message);
    router_.emplace(std::move(*router));
    REQUIRE(pipe(stop_) == 0);
    thread_ = std::thread([this] { serve(); });
  }
  ~EchoServer() {
    close(stop_[1]);
    thread_.join();
    close(stop_[0]);
  }
  [[nodiscard]] const PublicKey& key() const { return keys_.public_key; }
  [[nodiscard]] std::string address(std::size_t i = 0) const { return router_->endpoints().at(i); }
  Result<Client> connect(std::size_t endpoint = 0) {
    return Client::connect(
        {.address = address(endpoint), .server_key = key(), .keys = {}, .timeout = kSoon});
  }

 private:
  void serve() {
    while (true) {
      while (auto message = router_->receive()) {
        const std::string body = message->body == "who am I" ? to_z85(message->key) : message->body;
        (void)router_->send(message->peer, message->header, body);
      }
      if (router_->readable()) continue;
      pollfd fds[] = {{router_->descriptor(), POLLIN, 0}, {stop_[0], POLLIN, 0}};
      poll(fds, 2, -1);
      if (fds[1].revents != 0) return;
    }
  }
  KeyPair keys_;
  std::optional<Router> router_;
  int stop_[2] = {-1, -1};
  std::thread thread_;
};

std::string call(Client& client, std::string_view body) {
  const auto sent = client.send("header", body, kSoon);
  if (!sent) return "send: " + sent.error().message;
  const auto reply = client.receive(kSoon);
  if (!reply) return "receive: " + reply.error().message;
  REQUIRE(reply->size() == 2);
  CHECK(reply->at(0) == "header");
  return reply->at(1);
}

// A plain server socket on loopback, which plays a broken controller.
struct Listener {
  Socket socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::string address;
  Listener() {
    sockaddr_in a = {};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof a;
    REQUIRE(bind(socket.fd(), reinterpret_cast<sockaddr*>(&a), size) == 0);
    REQUIRE(listen(socket.fd(), 4) == 0);
    getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&a), &size);
    address = fmt::format("tcp://127.0.0.1:{}", ntohs(a.sin_port));
  }
};

TEST_CASE("client and router understand each other over TCP and a Unix socket") {
  const TempDir dir;
  EchoServer server({"tcp://127.0.0.1:0", "ipc://" + dir.path + "/ctld.sock"});
  for (const std::size_t endpoint : {0u, 1u}) {
    auto client = server.connect(endpoint);
    REQUIRE_MESSAGE(client, client.error().message);
    CHECK(call(*client, "hello") == "hello");
    CHECK(call(*client, "") == "");
    CHECK(call(*client, "who am I") == to_z85(client->session_key()));
    for (const std::size_t size :
         {238u, 239u, 240u, 255u, 256u, 65'536u, 3'000'000u, 16'777'100u}) {
      if (size > kLargest) break;
      const std::string body(size, static_cast<char>('a' + size % 26));
      CHECK_MESSAGE(call(*client, body) == body, size);
    }
  }
}

TEST_CASE("the server sees the key pair that the client chose") {
  EchoServer server;
  const KeyPair own = generate_key_pair();
  auto client =
      Client::connect({.address = server.address(), .server_key = server.key(), .keys = own});
  REQUIRE(client);
  CHECK(call(*client, "who am I") == to_z85(own.public_key));
}

TEST_CASE("each of several clients is known by its own key, whoever spoke before") {
  EchoServer server;
  auto one = server.connect();
  auto two = server.connect();
  REQUIRE(one);
  REQUIRE(two);
  for (int i = 0; i < 3; ++i) {
    CHECK(call(*one, "who am I") == to_z85(one->session_key()));
    CHECK(call(*two, "who am I") == to_z85(two->session_key()));
    CHECK(call(*two, "who am I") == to_z85(two->session_key()));
  }
}

TEST_CASE("a connection may be made in two parts, and queued messages leave before sent ones") {
  EchoServer server;
  auto client = Client::start(
      {.address = server.address(), .server_key = server.key(), .keys = {}, .timeout = kSoon});
  REQUIRE(client);
  REQUIRE(client->finish());
  client->queue("0", "queued");
  client->queue("1", "queued");
  CHECK(client->queued_bytes() > 0);
  CHECK(client->receive(milliseconds(50)).error().code == ErrorCode::timed_out);
  REQUIRE(client->send("2", "sent", kSoon));
  CHECK(client->queued_bytes() == 0);
  for (const char* header : {"0", "1", "2"}) {
    const auto reply = client->receive(kSoon);
    REQUIRE_MESSAGE(reply, reply.error().message);
    CHECK(reply->at(0) == header);
  }
}

TEST_CASE("requests may be pipelined, and large replies come in while the client sends") {
  EchoServer server;
  auto client = server.connect();
  REQUIRE(client);
  const std::string body(std::min<std::size_t>(kLargest, 200'000), 'p');
  for (int i = 0; i < 100; ++i) REQUIRE(client->send(std::to_string(i), body, kSoon));
  for (int i = 0; i < 100; ++i) {
    const auto reply = client->receive(kSoon);
    REQUIRE_MESSAGE(reply, reply.error().message);
    CHECK(reply->at(0) == std::to_string(i));
    CHECK(reply->at(1).size() == body.size());
  }
  CHECK(client->receive(Duration{}).error().code == ErrorCode::timed_out);
  CHECK(call(*client, "still there") == "still there");
}

TEST_CASE("an oversized message ends that connection and no other") {
  EchoServer server;
  auto other = server.connect();
  auto client = server.connect();
  REQUIRE(client);
  (void)client->send("h", std::string(kMaxFrameBytes + 1000, 'x'), kSoon);
  CHECK(client->receive(kSoon).error().code == ErrorCode::unavailable);
  CHECK(call(*other, "fine") == "fine");
}

TEST_CASE("the router takes messages of one, three and a thousand frames as they are") {
  const KeyPair keys = generate_key_pair();
  auto router = Router::open({.endpoints = {"tcp://127.0.0.1:0"}, .keys = keys});
  REQUIRE(router);
  auto client = Client::connect(
      {.address = router->endpoints()[0], .server_key = keys.public_key, .keys = {}});
  REQUIRE(client);
  const auto take = [&] {
    const Deadline deadline(kSoon);
    while (true) {
      if (auto m = router->receive()) return *m;
      REQUIRE(wait_for(router->descriptor(), Wait::read, deadline));
    }
  };
  REQUIRE(client->send_frames({"only"}, kSoon));
  CHECK(take().frames == 1);
  REQUIRE(client->send_frames({"1", "2", "3"}, kSoon));
  const Incoming three = take();
  CHECK(three.frames == 3);
  CHECK(three.header == "1");
  CHECK(three.body == "2");
  // The test sends to a peer that has gone. The peer's queue may fill up first. The router knows
  // that the peer is gone for good only after it has read everything that came from the peer.
  client = fail(ErrorCode::unavailable, "closed");
  const auto start = std::chrono::steady_clock::now();
  Result<void> sent;
  do {
    CHECK_FALSE(router->receive());
    sent = router->send(three.peer, "h", "b");
  } while ((sent || sent.error().code == ErrorCode::limit_exceeded) &&
           std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
  REQUIRE_FALSE(sent);
  CHECK(sent.error().code == ErrorCode::not_found);
}

TEST_CASE("a wrong server key is refused with a hint") {
  EchoServer server;
  const auto client = Client::connect({.address = server.address(),
                                       .server_key = generate_key_pair().public_key,
                                       .keys = {},
                                       .timeout = kSoon});
  REQUIRE_FALSE(client);
  CHECK(client.error().code == ErrorCode::unavailable);
  CHECK(client.error().message.find("is the server key the right one?") != std::string::npos);
}

TEST_CASE("a closed port, a missing socket and a wrong address are reported at once") {
  std::string address;
  {
    const Listener listener;
    address = listener.address;
  }
  const auto attempt = [](const std::string& to) {
    return Client::connect(
               {.address = to, .server_key = generate_key_pair().public_key, .keys = {}})
        .error();
  };
  CHECK(attempt(address).code == ErrorCode::unavailable);
  CHECK(attempt("ipc:///tmp/gantry-no-such-socket").code == ErrorCode::unavailable);
  CHECK(attempt("tcp://127.0.0.1").code == ErrorCode::invalid_argument);
  CHECK(attempt("tcp://127.0.0.1:http").code == ErrorCode::invalid_argument);
  CHECK(attempt("ipc://").code == ErrorCode::invalid_argument);
}

TEST_CASE("a server that is silent, strange, or stops half way gives the client an error") {
  const PublicKey key = generate_key_pair().public_key;
  const std::string greeting =
      std::string("\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01", 12) + "CURVE" + std::string(47, '\0');
  struct Case {
    std::string bytes;
    bool close;
    ErrorCode code;
  };
  std::string null_mechanism = greeting;
  null_mechanism.replace(12, 5, std::string("NULL\0", 5));
  const std::vector<Case> cases = {
      {"", false, ErrorCode::timed_out},
      {"HTTP/1.1 400 Bad Request\r\n\r\n", true, ErrorCode::unavailable},
      {greeting, true, ErrorCode::unavailable},
      {null_mechanism, false, ErrorCode::unavailable},
      {greeting.substr(0, 30), false, ErrorCode::timed_out},
      {greeting + std::string("\x04\xa8", 2) + std::string(168, 'x'), false,
       ErrorCode::unavailable},
      {greeting + std::string("\x06\xff\xff\xff\xff\xff\xff\xff\xff", 9), false,
       ErrorCode::unavailable},
      {greeting + std::string("\x04\x0d\x05"
                              "ERROR\x06no way",
                              15),
       false, ErrorCode::unavailable},
  };
  for (const Case& c : cases) {
    Listener listener;
    std::thread server([&] {
      const Socket peer(accept(listener.socket.fd(), nullptr, nullptr));
      (void)write_some(peer.fd(), c.bytes);
      char buffer[4096];
      if (!c.close)  // The peer stays until the client gives up.
        while (recv(peer.fd(), buffer, sizeof buffer, 0) > 0) {
        }
    });
    const auto client =
        Client::connect({.address = listener.address,
                         .server_key = key,
                         .keys = {},
                         .timeout = c.code == ErrorCode::timed_out ? milliseconds(50) : kSoon});
    server.join();
    REQUIRE_FALSE(client);
    CHECK_MESSAGE(client.error().code == c.code, client.error().message);
  }
}

TEST_CASE("garbage and half handshakes do not disturb the server") {
  EchoServer server;
  auto witness = server.connect();
  REQUIRE(witness);
  std::mt19937 random(1);
  const std::string greeting =
      std::string("\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01", 12) + "CURVE" + std::string(47, '\0');
  std::vector<Socket> open;
  for (int i = 0; i < 60; ++i) {
    auto socket = connect_to(server.address(), Deadline(kSoon));
    REQUIRE(socket);
    std::string bytes = i % 3 == 0 ? "" : greeting.substr(0, i % 3 == 1 ? 64 : i);
    for (int n = static_cast<int>(random() % 400); n > 0; --n) bytes += static_cast<char>(random());
    (void)write_some(socket->fd(), bytes);
    if (i % 2 == 0) open.push_back(std::move(*socket));
  }
  CHECK(call(*witness, "fine") == "fine");
  auto late = server.connect();
  REQUIRE(late);
  CHECK(call(*late, "fine too") == "fine too");
}

TEST_CASE("a message that is not encrypted with the session's key ends the connection") {
  EchoServer server;
  // After a good message, the client's socket sends a MESSAGE that no key has encrypted.
  auto socket = connect_to(server.address(), Deadline(kSoon));
  auto client = server.connect();
  REQUIRE(client);
  REQUIRE(client->send("h", "b", kSoon));
  const char bad[] = "\0\x30\x07MESSAGE-this-is-not-encrypted-with-any-key-----";
  REQUIRE(::send(client->descriptor(), bad, 50, MSG_NOSIGNAL) == 50);
  Result<std::vector<Bytes>> reply = client->receive(kSoon);
  if (reply) reply = client->receive(kSoon);
  CHECK(reply.error().code == ErrorCode::unavailable);
}

TEST_CASE("the client answers ZeroMQ's pings, and refuses a message of too many frames") {
  const KeyPair keys = generate_key_pair();
  void* context = zmq_ctx_new();
  void* socket = zmq_socket(context, ZMQ_ROUTER);
  const int on = 1, interval = 10, patience = 400;
  zmq_setsockopt(socket, ZMQ_CURVE_SERVER, &on, sizeof on);
  zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, keys.secret_key.bytes.data(), kKeyBytes);
  zmq_setsockopt(socket, ZMQ_HEARTBEAT_IVL, &interval, sizeof interval);
  zmq_setsockopt(socket, ZMQ_HEARTBEAT_TIMEOUT, &patience, sizeof patience);
  REQUIRE(zmq_bind(socket, "tcp://127.0.0.1:*") == 0);
  char address[128];
  std::size_t size = sizeof address;
  zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, address, &size);
  {
    auto client = Client::connect({.address = address, .server_key = keys.public_key, .keys = {}});
    REQUIRE(client);
    CHECK(client->receive(milliseconds(600)).error().code == ErrorCode::timed_out);
    REQUIRE(client->send("h", "b", kSoon));
    char buffer[16];
    CHECK(zmq_recv(socket, buffer, sizeof buffer, 0) == 5);
    // The client does not accept a message of so many frames, and ends the connection.
    zmq_send(socket, buffer, 5, ZMQ_SNDMORE);
    for (int i = 0; i < 100; ++i) zmq_send(socket, "f", 1, ZMQ_SNDMORE);
    zmq_send(socket, "f", 1, 0);
    const auto got = client->receive(kSoon);
    CHECK(got.error().message == "a message of too many or too large frames");
  }
  const int none = 0;
  zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof none);
  zmq_close(socket);
  zmq_ctx_term(context);
}

TEST_CASE("a node's dealer is known by its key, and comes back after a restart of the controller") {
  const TempDir dir;
  const std::string endpoint = "ipc://" + dir.path + "/ctld.sock";
  const KeyPair server = generate_key_pair();
  const KeyPair node = generate_key_pair();
  auto router = Router::open({.endpoints = {endpoint}, .keys = server});
  REQUIRE(router);
  auto dealer = Dealer::open({.endpoint = endpoint,
                              .server_key = server.public_key,
                              .keys = node,
                              .reconnect_min = milliseconds(5),
                              .reconnect_max = milliseconds(20)});
  REQUIRE(dealer);
  const auto exchange = [&] {
    const Deadline deadline(kSoon);
    std::optional<Incoming> got;
    while (deadline.left_ms() > 0 && !got) {
      (void)dealer->send("head", "body");
      (void)wait_for(router->descriptor(), Wait::read, Deadline(milliseconds(20)));
      got = router->receive();
    }
    REQUIRE(got);
    CHECK(got->key == node.public_key);
    CHECK(got->header == "head");
    REQUIRE(router->send(got->peer, "order", "do"));
    std::optional<Dealer::Message> order;
    while (deadline.left_ms() > 0 && !order) {
      (void)wait_for(dealer->descriptor(), Wait::read, Deadline(milliseconds(20)));
      order = dealer->receive();
    }
    REQUIRE(order);
    CHECK(order->header == "order");
    CHECK(order->body == "do");
  };
  exchange();
  router = fail(ErrorCode::unavailable, "stopped");
  router = Router::open({.endpoints = {endpoint}, .keys = server});
  REQUIRE(router);
  exchange();
}

TEST_CASE("a new connection and a round trip take less than a generous time") {
  EchoServer server;
  std::vector<double> whole;
  std::vector<double> trip;
  const auto now = [] { return std::chrono::steady_clock::now(); };
  for (int i = 0; i < 50; ++i) {
    const auto start = now();
    auto client = server.connect();
    REQUIRE(client);
    CHECK(call(*client, "x") == "x");
    const auto connected = now();
    CHECK(call(*client, "y") == "y");
    whole.push_back(std::chrono::duration<double, std::milli>(connected - start).count());
    trip.push_back(std::chrono::duration<double, std::milli>(now() - connected).count());
  }
  std::sort(whole.begin(), whole.end());
  std::sort(trip.begin(), trip.end());
  MESSAGE(
      fmt::format("connect, handshake, round trip: median {:.2f} ms, least {:.2f} ms; "
                  "a further round trip: median {:.2f} ms",
                  whole[25], whole[0], trip[25]));
  // The limit is generous, so that it also holds in a sanitizer build on a busy machine.
  CHECK(whole[25] < 500);
}

TEST_CASE("a server with a thousand idle connections still answers") {
  EchoServer server;
  std::vector<Client> idle;
  for (int i = 0; i < 1000; ++i) {
    auto client = server.connect();
    REQUIRE_MESSAGE(client, client.error().message);
    idle.push_back(std::move(*client));
  }
  auto client = server.connect();
  REQUIRE(client);
  CHECK(call(*client, "served") == "served");
  CHECK(call(idle[500], "awake") == "awake");
}

}  // namespace
}  // namespace gantry::net
