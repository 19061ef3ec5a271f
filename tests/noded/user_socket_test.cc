// The socket of a login node, with the daemon as a process and a scripted controller: who may use
// it, what goes out, how much of it, and what happens when the link ends.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include "common/net/job_socket_client.h"
#include "noded/net/job_sockets.h"
#include "noded/net/user_socket.h"
#include "tests/eventually.h"
#include "tests/noded/process_node.h"

namespace gantry::test {
namespace {

constexpr auto kPingNumber = static_cast<std::uint16_t>(proto::MessageType::Ping);
constexpr auto kHelloNumber = static_cast<std::uint16_t>(proto::MessageType::SocketHello);

struct LoginNode {
  FakeController ctld;
  NodeUnderTest node{ctld, "process", "n1"};
  std::string path = node.dir() + "/run/cli.sock";

  explicit LoginNode(Duration heartbeat = kUnhurried) {
    ctld.heartbeat = heartbeat;
    std::filesystem::create_directories(node.dir() + "/run");
    node.start();
    ctld.accept();
  }
  [[nodiscard]] net::JobSocketClient connect(bool greets = true) const {
    auto client = net::JobSocketClient::connect(path, seconds(5));
    eventually(
        [&] { return client || (client = net::JobSocketClient::connect(path, seconds(5))); });
    REQUIRE_MESSAGE(client, client.error().message);
    if (greets)
      client->queue({proto::kProtocolVersion, kHelloNumber, 1},
                    codec::encode(proto::SocketHello{net::to_z85(ctld.keys().public_key)}));
    return std::move(*client);
  }
  // A client that the daemon relays for; before it is registered it refuses.
  net::JobSocketClient connected() {
    for (int tries = 0; tries < 500; ++tries) {
      auto client = connect();
      ask(client, kPingNumber, 3, "");
      auto got = client.receive(milliseconds(100));
      if (!got && got.error().code == ErrorCode::timed_out) return client;
    }
    FAIL("the daemon does not relay");
    return connect();
  }
  static void ask(net::JobSocketClient& client, std::uint16_t type, std::uint64_t request,
                  const Bytes& body) {
    (void)client.send({proto::kProtocolVersion, type, request}, body, seconds(20));
  }
  // The controller's copy of a request from this client with a unique number.
  proto::UserRelay relayed(net::JobSocketClient& client, std::uint64_t request) {
    ctld.forget_seen_of<proto::UserRelay>();
    ask(client, kPingNumber, request, "");
    return ctld.expect<proto::UserRelay>([&](const auto& m) { return m.request == request; });
  }
  void answer(std::uint64_t channel, std::uint64_t request) {
    proto::RelayReply reply;
    reply.channel = channel;
    reply.type = static_cast<std::uint16_t>(proto::MessageType::PingReply);
    reply.request = request;
    ctld.send(reply);
  }
};

// The next message but the greeting's answer, which comes when the machine is slow.
Result<net::StreamMessage> next(net::JobSocketClient& client, Duration limit = seconds(10)) {
  auto got = client.receive(limit);
  if (got && got->header.type == static_cast<std::uint16_t>(proto::MessageType::Ok))
    got = client.receive(limit);
  return got;
}

std::string refused(net::JobSocketClient& client) {
  const auto got = next(client);
  if (!got) return name_of(got.error().code).data();
  if (got->header.type != static_cast<std::uint16_t>(proto::MessageType::ErrorReply))
    return "answered";
  return std::string(
      name_of(static_cast<ErrorCode>(codec::decode<proto::ErrorReply>(got->body)->code)));
}

}  // namespace

TEST_CASE("what a user asks goes out with the uid that the kernel says, and is answered there") {
  LoginNode n;
  auto one = n.connected();
  const auto first = n.relayed(one, 50);
  CHECK(first.uid == Uid{::geteuid()});
  CHECK(first.type == kPingNumber);
  CHECK(node::UserSocket::is_user_channel(first.channel));
  auto two = n.connect();
  // The same number on another connection.
  const auto second = n.relayed(two, 50);
  CHECK(second.channel != first.channel);
  n.answer(second.channel, 50);
  n.answer(second.channel + 99, 50);  // a channel that does not exist
  const auto got = next(two);
  REQUIRE(got);
  CHECK(got->header.request == 50);
  CHECK_FALSE(next(one, milliseconds(50)));
}

TEST_CASE(
    "a client that waits is told that the daemon lives, and the end of a connection is told") {
  LoginNode n;
  std::optional client = n.connected();
  const auto relay = n.relayed(*client, 50);
  const auto alive = client->receive(seconds(10));
  REQUIRE(alive);
  CHECK(alive->header.type == static_cast<std::uint16_t>(proto::MessageType::Ok));
  CHECK(alive->header.request == 1);
  client.reset();
  // It closed with a request without an answer, so the daemon has to be told when that is settled.
  const auto gone = n.ctld.expect<proto::UsersGone>([&](const auto& m) {
    return std::find(m.channels.begin(), m.channels.end(), relay.channel) != m.channels.end();
  });
  CHECK(gone.answer);
  auto another = n.connect();
  const auto second = n.relayed(another, 51);
  n.answer(second.channel, 51);
  REQUIRE(next(another));
  another = n.connect();
  const auto settled = n.ctld.expect<proto::UsersGone>([&](const auto& m) {
    return std::find(m.channels.begin(), m.channels.end(), second.channel) != m.channels.end();
  });
  CHECK_FALSE(settled.answer);
}

TEST_CASE("the users' socket refuses credentials, what needs one, other controllers and reports") {
  LoginNode n;
  auto client = n.connected();
  for (const auto type : {proto::MessageType::Authenticate, proto::MessageType::Hello,
                          proto::MessageType::RegisterKey, proto::MessageType::MakeToken,
                          proto::MessageType::ApplyTenancy}) {
    LoginNode::ask(client, static_cast<std::uint16_t>(type), 10, "");
    CHECK(refused(client) == "unauthenticated");
  }
  for (const auto type : {proto::MessageType::ExitReport, proto::MessageType::UserRelay,
                          proto::MessageType::NodeRelay, proto::MessageType::LaunchStep}) {
    LoginNode::ask(client, static_cast<std::uint16_t>(type), 11, "");
    CHECK(refused(client) == "permission_denied");
  }
  LoginNode::ask(client, kPingNumber, 3, "");
  CHECK(refused(client) == "invalid_argument");  // number 3 has no answer yet
  auto stranger = n.connect(false);
  LoginNode::ask(stranger, kPingNumber, 3, "");
  CHECK(refused(stranger) == "unauthenticated");
  stranger.queue({proto::kProtocolVersion, kHelloNumber, 1},
                 codec::encode(proto::SocketHello{std::string(40, 'x')}));
  LoginNode::ask(stranger, kPingNumber, 4, "");
  CHECK(refused(stranger) == "wrong_state");
  CHECK(refused(stranger) == "unauthenticated");
}

TEST_CASE("a process of a job may not use the users' socket") {
  LoginNode n;
  const std::string where = n.node.dir() + "/work";
  std::filesystem::create_directory(where);
  // With plain processes nothing hides the socket from a job; its cgroup reveals it.
  n.ctld.send(launch(n.ctld, 1, where,
                     "python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.connect(\"" +
                         n.path + "\"); d = s.recv(4096); open(\"got\", \"wb\").write(d)'\n"));
  n.ctld.expect<proto::ExitReport>([](const auto& m) { return m.key == key(1); });
  const std::string got = read_text(where + "/got");
  CHECK_MESSAGE(got.find("may be a job's") != std::string::npos, got);
}

TEST_CASE("one user's connections and requests are limited") {
  LoginNode n;
  auto client = n.connected();
  const Bytes large(4u << 20, 'x');
  std::size_t refusals = 0;
  for (std::uint64_t i = 0; i < 12; ++i) {
    LoginNode::ask(client, kPingNumber, 100 + i, large);
    if (const auto got = client.receive(milliseconds(200));
        got && got->header.type == static_cast<std::uint16_t>(proto::MessageType::ErrorReply))
      ++refusals;
  }
  CHECK(refusals >= 4);  // 32 MiB are taken, whatever connection they come on
  // The daemon has told the client meanwhile that it lives, which is no refusal.
  CHECK(refusals <= 5);
  std::vector<net::JobSocketClient> many;
  std::string last;
  for (std::size_t i = 0; i < node::kMostConnectionsOfUser + 2 && last.empty(); ++i) {
    many.push_back(n.connect());
    LoginNode::ask(many.back(), static_cast<std::uint16_t>(proto::MessageType::MakeToken), 3, "");
    if (const std::string said = refused(many.back()); said != "unauthenticated") last = said;
  }
  CHECK(last == "too_many");
  CHECK(many.size() == node::kMostConnectionsOfUser);
  many.clear();
  // Places become free as connections close.
  for (int tries = 0; tries < 500 && last == "too_many"; ++tries) {
    auto next = n.connect();
    LoginNode::ask(next, static_cast<std::uint16_t>(proto::MessageType::MakeToken), 3, "");
    last = refused(next);
  }
  CHECK(last == "unauthenticated");
}

TEST_CASE("when the link ends, clients that wait are told at once, and others are refused") {
  std::optional<LoginNode> n;
  n.emplace();
  auto waits = n->connected();
  n->ctld.expect<proto::UserRelay>();
  n->ctld.stop();
  CHECK(refused(waits) != "timed_out");
  net::JobSocketClient late = n->connect();
  LoginNode::ask(late, kPingNumber, 3, "");
  CHECK(refused(late) == "unavailable");
}

}  // namespace gantry::test
