// The socket that a job has on its node, with the daemon as a process and a scripted controller:
// what a job's programs may send, how much of it, and what a hostile one gains.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <vector>

#include "common/auth/signature.h"
#include "common/net/client.h"
#include "common/net/job_socket_client.h"
#include "common/net/keys.h"
#include "common/net/listen.h"
#include "common/net/secure_stream.h"
#include "noded/net/job_connection.h"
#include "noded/net/job_sockets.h"
#include "noded/steps/step_service.h"
#include "tests/noded/process_node.h"

namespace gantry::test {
namespace {

constexpr auto kPing = static_cast<std::uint16_t>(proto::MessageType::Ping);

// A job that sleeps, and a command of its own on its socket.
struct JobWithSocket : ProcessNode {
  std::string path;
  std::optional<net::JobSocketClient> inside;

  JobWithSocket() {
    ctld.send(job(1, "echo $GANTRY_JOB_SOCKET > where; sleep 60\n"));
    started(1);
    for (; path.empty(); ::usleep(10'000)) path = read_text(work + "/where");
    path.pop_back();
    connect();
  }
  void end() {
    ctld.send(proto::Terminate{ctld.stamp(), key(1), Duration{}, ""});
    exit_of(ctld, 1);
    ctld.send(proto::AckExit{ctld.stamp(), key(1)});
  }
  void connect() {
    auto connected = net::JobSocketClient::connect(path, seconds(5));
    REQUIRE(connected);
    inside.emplace(std::move(*connected));
  }
  void ask(std::uint16_t type, const Bytes& body) {
    const auto sent = inside->send({proto::kProtocolVersion, type, 77}, body, seconds(5));
    REQUIRE_MESSAGE(sent, (sent ? "" : sent.error().message));
  }
};

TEST_CASE("commands inside a job reach the controller through its socket") {
  JobWithSocket n;
  n.ask(kPing, codec::encode(proto::Ping{}));
  const auto relay = n.ctld.expect<proto::NodeRelay>();
  CHECK(relay.key == key(1));
  CHECK(relay.type == kPing);
  CHECK(relay.request == 77);
  proto::RelayReply reply;
  reply.channel = relay.channel;
  reply.type = static_cast<std::uint16_t>(proto::MessageType::PingReply);
  reply.request = 77;
  reply.body = Bytes(300'000, 'x');
  n.ctld.send(reply);
  const auto got = n.inside->receive(seconds(5));
  REQUIRE(got);
  CHECK(got->header.type == reply.type);
  CHECK(got->header.request == 77);
  CHECK(got->body == reply.body);
  n.end();
}

// The code of the refusal that comes on a connection.
ErrorCode refused_with(const net::Socket& socket) {
  net::StreamFrames frames;
  auto refusal = frames.next();
  while (refusal && !*refusal) {
    char buffer[4096];
    REQUIRE(net::wait_for(socket.fd(), net::Wait::read, net::Deadline(seconds(5))));
    const auto read = net::read_some(socket.fd(), buffer, sizeof buffer);
    REQUIRE(read);
    frames.feed({buffer, *read});
    refusal = frames.next();
  }
  REQUIRE(refusal);
  return static_cast<ErrorCode>(codec::decode<proto::ErrorReply>((*refusal)->body)->code);
}

TEST_CASE("a job's socket refuses what only nodes or the controller may send, and what is none") {
  JobWithSocket n;
  n.ask(static_cast<std::uint16_t>(proto::MessageType::ExitReport), "");
  const auto got = n.inside->receive(seconds(5));
  REQUIRE(got);
  CHECK(got->header.type == static_cast<std::uint16_t>(proto::MessageType::ErrorReply));
  CHECK(codec::decode<proto::ErrorReply>(got->body)->code ==
        static_cast<std::uint16_t>(ErrorCode::unsupported));
  // A message that is none ends its connection, not the daemon.
  auto raw = net::connect_to("ipc://" + n.path, net::Deadline(seconds(5)));
  REQUIRE(raw);
  REQUIRE(net::write_some(raw->fd(), std::string_view("\xff\xff\xff\xff", 4)));
  CHECK(refused_with(*raw) == ErrorCode::malformed);
  char byte = 0;
  REQUIRE(net::wait_for(raw->fd(), net::Wait::read, net::Deadline(seconds(5))));
  CHECK(!net::read_some(raw->fd(), &byte, 1));  // closed
  n.end();
}

std::size_t resident_mib(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/statm");
  std::size_t pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) >> 20;
}

TEST_CASE("forty unfinished messages of a job do not fill its node, and the next one is served") {
  JobWithSocket n;
  constexpr std::size_t kLength = 15u << 20;
  Bytes frame;
  net::append_frame(frame, {proto::kProtocolVersion, kPing, 1}, Bytes(kLength, 'x'));
  std::vector<net::Socket> open;
  std::size_t most = 0;
  for (int i = 0; i < 40; ++i) {
    auto one = net::connect_to("ipc://" + n.path, net::Deadline(seconds(5)));
    REQUIRE(one);
    std::string_view rest = std::string_view(frame).substr(0, kLength);  // it lacks its end
    while (!rest.empty()) {
      const auto sent = net::write_some(one->fd(), rest);
      if (!sent) break;  // it has been closed
      rest.remove_prefix(*sent);
      if (*sent == 0 && !net::wait_for(one->fd(), net::Wait::write, net::Deadline(seconds(20))))
        break;
    }
    most = std::max(most, resident_mib(n.node.pid()));
    open.push_back(std::move(*one));
  }
  MESSAGE("the daemon had ", most, " MiB at the most");
  CHECK(most < 200);
  n.connect();
  n.ask(kPing, codec::encode(proto::Ping{}));
  CHECK(n.ctld.expect<proto::NodeRelay>([](const auto& m) { return m.type == kPing; }).request ==
        77);
  n.end();
}

TEST_CASE("the largest message of a job does not break its node's link, and a larger one is none") {
  JobWithSocket n;
  n.ask(kPing, Bytes(node::kMostJobMessage - net::kHeaderBytes, 'x'));
  const auto relay = n.ctld.expect<proto::NodeRelay>();
  CHECK(relay.body.size() == node::kMostJobMessage - net::kHeaderBytes);
  // One byte more, of which the beginning says enough.
  Bytes frame;
  net::append_frame(frame, {proto::kProtocolVersion, kPing, 1},
                    Bytes(node::kMostJobMessage - net::kHeaderBytes + 1, 'x'));
  auto raw = net::connect_to("ipc://" + n.path, net::Deadline(seconds(5)));
  REQUIRE(raw);
  REQUIRE(net::write_some(raw->fd(), std::string_view(frame).substr(0, 100)));
  CHECK(refused_with(*raw) == ErrorCode::malformed);
  // The controller hears of the end of each connection that it knows, and of no other.
  n.inside.reset();
  const auto closed = n.ctld.expect<proto::NodeRelay>();
  CHECK(closed.type == proto::kRelayClosed);
  CHECK(closed.channel == relay.channel);
  // The same link as before: it has not registered again.
  CHECK(n.ctld.nothing<proto::NodeRegister>(milliseconds(300)));
  n.end();
}

TEST_CASE("requests that are not answered wait in bounded number") {
  JobWithSocket n;
  const Bytes body(4u << 20, 'x');
  std::size_t refused = 0;
  for (std::uint64_t i = 0; i < 12; ++i) {
    const auto sent = n.inside->send({proto::kProtocolVersion, kPing, i}, body, seconds(20));
    REQUIRE(sent);
  }
  for (int i = 0; i < 4; ++i) {  // 32 MiB are 8 of them
    const auto got = n.inside->receive(seconds(20));
    REQUIRE(got);
    CHECK(codec::decode<proto::ErrorReply>(got->body)->code ==
          static_cast<std::uint16_t>(ErrorCode::too_many));
    ++refused;
  }
  CHECK(refused == 4);
  // An answer makes room.
  const auto relay = n.ctld.expect<proto::NodeRelay>();
  proto::RelayReply reply;
  reply.channel = relay.channel;
  reply.type = static_cast<std::uint16_t>(proto::MessageType::PingReply);
  reply.request = relay.request;
  n.ctld.send(reply);
  REQUIRE(n.inside->receive(seconds(20)));
  n.ctld.forget_seen();
  REQUIRE(n.inside->send({proto::kProtocolVersion, kPing, 99}, body, seconds(20)));
  CHECK(n.ctld.expect<proto::NodeRelay>([](const auto& m) { return m.request == 99; }).type ==
        kPing);
  n.end();
}

TEST_CASE(
    "a number that a request has is no other request's, and closed connections wait for none") {
  JobWithSocket n;
  const auto code = [&] {
    const auto got = n.inside->receive(seconds(20));
    REQUIRE(got);
    return static_cast<ErrorCode>(codec::decode<proto::ErrorReply>(got->body)->code);
  };
  // Twice the same one: else one number would carry as many requests as a job likes.
  n.ask(kPing, "");
  n.ask(kPing, "");
  CHECK(code() == ErrorCode::invalid_argument);
  const auto first = n.ctld.expect<proto::NodeRelay>();
  CHECK(n.ctld.nothing<proto::NodeRelay>(milliseconds(200)));
  n.ctld.send(proto::RelayReply{first.channel, kPing, first.request, {}});
  REQUIRE(n.inside->receive(seconds(20)));
  // As many as may wait, on a connection that closes: the controller answers none of them.
  for (std::uint64_t i = 0; i < node::kMostUnanswered; ++i)
    REQUIRE(n.inside->send({proto::kProtocolVersion, kPing, i}, "", seconds(20)));
  n.inside.reset();
  (void)n.ctld.expect<proto::NodeRelay>(
      [](const auto& m) { return m.type == proto::kRelayClosed; });
  n.connect();
  n.ask(kPing, "");
  CHECK(code() == ErrorCode::too_many);
  n.ctld.send(proto::RelayReply{first.channel, proto::kRelayClosed, 0, {}});
  n.ctld.forget_seen();
  bool relayed = false;
  for (std::uint64_t i = 100; i < 300 && !relayed; ++i) {
    REQUIRE(n.inside->send({proto::kProtocolVersion, kPing, i}, "", seconds(20)));
    relayed = !n.ctld.nothing<proto::NodeRelay>(milliseconds(100));
  }
  CHECK(relayed);
  n.end();
}

TEST_CASE("a connection has one ticket for its steps, however often it asks") {
  JobWithSocket n;
  const auto ticket = [&] {
    n.ask(static_cast<std::uint16_t>(proto::MessageType::StepListen),
          codec::encode(proto::StepListen{}));
    const auto got = n.inside->receive(seconds(20));
    REQUIRE(got);
    return codec::decode<proto::StepListening>(got->body)->ticket;
  };
  const Bytes first = ticket();
  CHECK(ticket() == first);
  n.connect();
  CHECK(ticket() != first);
  n.end();
}

TEST_CASE("strangers who say no ticket keep no step's stream out") {
  JobWithSocket n;
  n.ask(static_cast<std::uint16_t>(proto::MessageType::StepListen),
        codec::encode(proto::StepListen{}));
  const auto got = n.inside->receive(seconds(20));
  REQUIRE(got);
  const auto listening = codec::decode<proto::StepListening>(got->body);
  REQUIRE(listening);
  const std::string& address = listening->address;
  rlimit files{8'192, 8'192};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &files) == 0);
  std::vector<net::Socket> silent;
  for (int i = 0; i < 4'200; ++i) {
    auto one = net::connect_to(address, net::Deadline(seconds(5)));
    REQUIRE(one);
    silent.push_back(std::move(*one));
  }
  auto stream = net::connect_to(address, net::Deadline(seconds(5)));
  REQUIRE(stream);
  const auto crypt = net::SecureStream::create(
      net::StreamRole::dialler, std::string(net::kStreamKeyBytes, 'k'), listening->ticket);
  REQUIRE(crypt);
  REQUIRE(net::write_some(stream->fd(), crypt->output()));
  // The stream is handed in, with one byte of data.
  REQUIRE(net::wait_for(n.inside->descriptor(), net::Wait::read, net::Deadline(seconds(9))));
  char byte = 0;
  REQUIRE(net::read_some(n.inside->descriptor(), &byte, 1));
  CHECK(byte == 'S');
  n.end();
}

// A node that knows its controller's key for permissions, a job on it, and a permission for that.
struct JobWithSteps : JobWithSocket {
  auth::SigningKey controller_key = auth::generate_signing_key();
  proto::StepPermission permission;

  JobWithSteps() {
    ctld.permission_key = Bytes(controller_key.verify_key.view());
    node.stop(SIGTERM);
    ctld.forget_seen();
    node.start();
    facts = ctld.accept();
    (void)ctld.expect<proto::Heartbeat>();  // it knows the key now
    connect();
    permission.key = key(1);
    permission.owner = job(1, "").owner;
    permission.tasks = 1;
    permission.expires = Instant{std::int64_t{std::time(nullptr)} * 1'000'000} + hours(1);
    proto::StepNode here;
    here.node = "n1";
    here.address = facts.address;
    here.tasks = 1;
    permission.nodes = {here};
  }
  template <class Message>
  Message signed_message(std::string_view context) {
    Message message;
    message.permission = codec::encode(permission);
    message.signature = auth::sign(controller_key, context, message.permission);
    message.node = permission.nodes.front().node;
    return message;
  }
  proto::LaunchStep step() {
    permission.step = StepId{permission.step.value() + 1};
    auto step = signed_message<proto::LaunchStep>(proto::kStepPermissionContext);
    step.argv = {"true"};
    return step;
  }
  proto::StepListening listen() {
    ask(static_cast<std::uint16_t>(proto::MessageType::StepListen),
        codec::encode(proto::StepListen{}));
    const auto got = inside->receive(seconds(20));
    REQUIRE(got);
    const auto listening = codec::decode<proto::StepListening>(got->body);
    REQUIRE(listening);
    return *listening;
  }
  // What the node says to `message` on the job's socket, or to a client of its ROUTER.
  template <class Message>
  std::string said_inside(const Message& message) {
    ask(static_cast<std::uint16_t>(proto::number_of<Message>), codec::encode(message));
    const auto got = inside->receive(seconds(20));
    REQUIRE(got);
    return words(got->header.type, got->body);
  }
  template <class Message>
  std::string said_outside(const Message& message) {
    net::ClientOptions options;
    options.address = "tcp://" + facts.address;
    options.server_key = net::load_key_pair(node.dir() + "/node.key")->public_key;
    auto client = net::Client::connect(options);
    REQUIRE(client);
    const net::HeaderBytes header(
        {proto::kProtocolVersion, static_cast<std::uint16_t>(proto::number_of<Message>), 1});
    REQUIRE(client->send(header.view(), codec::encode(message), seconds(5)));
    const auto frames = client->receive(seconds(20));
    REQUIRE(frames);
    return words(net::decode_header(frames->front())->type, frames->back());
  }
  static std::string words(std::uint16_t type, const Bytes& body) {
    if (type != static_cast<std::uint16_t>(proto::MessageType::ErrorReply)) return "";
    return codec::decode<proto::ErrorReply>(body)->message;
  }
};

constexpr const char* kTicket = "0123456789abcdef0123456789abcdef";

TEST_CASE("a shim dials the host of who asks for a step, or the job's own node, and no other") {
  JobWithSteps n;
  const auto outside = [&](const char* address, const Bytes& ticket) {
    auto launch = n.step();
    auto attach = n.signed_message<proto::AttachStep>(proto::kStepAttachContext);
    launch.io_address = attach.io_address = address;
    launch.io_ticket = attach.io_ticket = ticket;
    launch.io_key = attach.io_key = Bytes(net::kStreamKeyBytes, 'k');
    return std::pair(n.said_outside(launch), n.said_outside(attach));
  };
  const auto both = [](const std::pair<std::string, std::string>& said, const char* words) {
    CAPTURE(said.first);
    CAPTURE(said.second);
    CHECK(said.first.find(words) != std::string::npos);
    CHECK(said.second.find(words) != std::string::npos);
  };
  constexpr const char* kForeign = "goes to the host that asks for it, 127.0.0.1, and not to ";
  both(outside("tcp://127.0.0.2:7000", kTicket), kForeign);
  both(outside("tcp://192.0.2.1:25", kTicket), kForeign);
  both(outside("tcp://[::1]:7000", kTicket), kForeign);
  for (const char* none : {"tcp://localhost:7000", "tcp://127.0.0.1:0", "tcp://127.0.0.1:70000",
                           "127.0.0.1:7000", "tcp://127.0.0.1"})
    both(outside(none, kTicket), "is not the address of a step's stream");
  both(outside("tcp://127.0.0.1:7000", "EHLO here\r\n"), "32 hex digits");
  both(outside("tcp://127.0.0.1:7000", Bytes(4'000, 'a')), "32 hex digits");
  const auto own = outside("tcp://127.0.0.1:7000", kTicket);
  CHECK(own.first.empty());  // it is launched; nobody listens, which its shim finds

  const auto inside = [&](const std::string& address, const Bytes& ticket) {
    auto launch = n.step();
    auto attach = n.signed_message<proto::AttachStep>(proto::kStepAttachContext);
    launch.io_address = attach.io_address = address;
    launch.io_ticket = attach.io_ticket = ticket;
    launch.io_key = attach.io_key = Bytes(net::kStreamKeyBytes, 'k');
    return std::pair(n.said_inside(launch), n.said_inside(attach));
  };
  const auto listening = n.listen();
  constexpr const char* kNotHere = "goes to where the job's own node listens";
  both(inside("tcp://127.0.0.1:7000", listening.ticket), kNotHere);
  both(inside("tcp://192.0.2.1:25", listening.ticket), kNotHere);
  both(inside(listening.address, kTicket), kNotHere);  // no ticket of this job's
  CHECK(inside(listening.address, listening.ticket).first.empty());
  n.end();
}

TEST_CASE("launches that wait for another node are bounded: each has a connection of the node's") {
  JobWithSteps n;
  // The other node takes connections, and answers nothing.
  const auto silent = net::listen_at("tcp://127.0.0.1:0", 64);
  REQUIRE(silent);
  proto::StepNode& other = n.permission.nodes.front();
  other.node = "n2";
  other.address = silent->endpoint.substr(std::string_view("tcp://").size());
  other.public_key = net::to_z85(net::generate_key_pair().public_key);
  const proto::LaunchStep step = n.step();
  const Bytes body = codec::encode(step);
  constexpr int kMany = 200;
  for (int i = 0; i < kMany; ++i)
    n.ask(static_cast<std::uint16_t>(proto::number_of<proto::LaunchStep>), body);
  for (int i = 0; i < kMany - static_cast<int>(node::kMostPassedOn); ++i) {
    const auto got = n.inside->receive(seconds(10));
    REQUIRE(got);
    const auto refusal = codec::decode<proto::ErrorReply>(got->body);
    REQUIRE_MESSAGE(refusal->code == static_cast<std::uint16_t>(ErrorCode::too_many),
                    refusal->message);
  }
  n.end();
}

TEST_CASE("a job's socket is there again after a restart of the daemon") {
  JobWithSocket n;
  n.ask(kPing, codec::encode(proto::Ping{}));
  const auto channel = n.ctld.expect<proto::NodeRelay>().channel;
  n.node.stop(SIGKILL);
  n.ctld.forget_seen();
  n.node.start();
  n.ctld.accept();
  (void)n.ctld.expect<proto::Heartbeat>();  // it has its session: before, it relays nothing
  n.connect();
  n.ask(kPing, "");
  CHECK(n.ctld.expect<proto::NodeRelay>().channel > channel);
  n.end();
}
}  // namespace
}  // namespace gantry::test
