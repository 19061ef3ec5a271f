// Tests the socket that a job has on its node, with the daemon as a process and a scripted
// controller: what a job's programs may send, how much of it, and what a hostile program can do.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <vector>

#include "common/net/secure_stream.h"
#include "noded/net/job_sockets.h"
#include "tests/noded/job_with_socket.h"

namespace gantry::test {
namespace {

constexpr auto kPing = static_cast<std::uint16_t>(proto::MessageType::Ping);

TEST_CASE("a command inside a job reaches the controller through the job's socket") {
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

// Reads the refusal that arrives on a connection, and returns its code.
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

TEST_CASE(
    "a job's socket refuses messages of nodes or the controller, and bytes that are no message") {
  JobWithSocket n;
  n.ask(static_cast<std::uint16_t>(proto::MessageType::ExitReport), "");
  const auto got = n.inside->receive(seconds(5));
  REQUIRE(got);
  CHECK(got->header.type == static_cast<std::uint16_t>(proto::MessageType::ErrorReply));
  CHECK(codec::decode<proto::ErrorReply>(got->body)->code ==
        static_cast<std::uint16_t>(ErrorCode::permission_denied));
  CHECK(codec::decode<proto::ErrorReply>(got->body)->message ==
        "ExitReport goes from a node to the controller: a program inside a job may not send it to "
        "the controller");
  // Bytes that are no message end their connection, but not the daemon.
  auto raw = net::connect_to("ipc://" + n.path, net::Deadline(seconds(5)));
  REQUIRE(raw);
  REQUIRE(net::write_some(raw->fd(), std::string_view("\xff\xff\xff\xff", 4)));
  CHECK(refused_with(*raw) == ErrorCode::malformed);
  char byte = 0;
  REQUIRE(net::wait_for(raw->fd(), net::Wait::read, net::Deadline(seconds(5))));
  CHECK(!net::read_some(raw->fd(), &byte, 1));  // the connection was closed
  n.end();
}

std::size_t resident_mib(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/statm");
  std::size_t pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) >> 20;
}

TEST_CASE(
    "forty unfinished messages of a job do not fill the daemon's memory, and the next is served") {
  JobWithSocket n(kUnhurried);
  constexpr std::size_t kLength = 15u << 20;
  Bytes frame;
  net::append_frame(frame, {proto::kProtocolVersion, kPing, 1}, Bytes(kLength, 'x'));
  std::vector<net::Socket> open;
  std::size_t most = 0;
  for (int i = 0; i < 40; ++i) {
    auto one = net::connect_to("ipc://" + n.path, net::Deadline(seconds(5)));
    REQUIRE(one);
    // The message is not complete.
    std::string_view rest = std::string_view(frame).substr(0, kLength);
    while (!rest.empty()) {
      const auto sent = net::write_some(one->fd(), rest);
      if (!sent) break;  // the daemon has closed the connection
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

TEST_CASE("a job's largest message passes over its node's link, and a larger one is refused") {
  JobWithSocket n(kUnhurried);
  n.ask(kPing, Bytes(node::kMostJobMessage - net::kHeaderBytes, 'x'));
  const auto relay = n.ctld.expect<proto::NodeRelay>();
  CHECK(relay.body.size() == node::kMostJobMessage - net::kHeaderBytes);
  // The message has one byte too many; its first bytes already show that.
  Bytes frame;
  net::append_frame(frame, {proto::kProtocolVersion, kPing, 1},
                    Bytes(node::kMostJobMessage - net::kHeaderBytes + 1, 'x'));
  auto raw = net::connect_to("ipc://" + n.path, net::Deadline(seconds(5)));
  REQUIRE(raw);
  REQUIRE(net::write_some(raw->fd(), std::string_view(frame).substr(0, 100)));
  CHECK(refused_with(*raw) == ErrorCode::malformed);
  // The controller is told of the end of the connection that it knows, and not of the other.
  n.inside.reset();
  const auto closed = n.ctld.expect<proto::NodeRelay>();
  CHECK(closed.type == proto::kRelayClosed);
  CHECK(closed.channel == relay.channel);
  // The node's link is the same as before: it has not registered again.
  CHECK(n.ctld.nothing<proto::NodeRegister>(milliseconds(300)));
  n.end();
}

TEST_CASE("the number and size of a job's unanswered requests are limited") {
  JobWithSocket n(kUnhurried);
  const Bytes body(4u << 20, 'x');
  std::size_t refused = 0;
  for (std::uint64_t i = 0; i < 12; ++i) {
    const auto sent = n.inside->send({proto::kProtocolVersion, kPing, i}, body, seconds(20));
    REQUIRE(sent);
  }
  for (int i = 0; i < 4; ++i) {  // 32 MiB have room for 8 of the 12 requests
    const auto got = n.inside->receive(seconds(20));
    REQUIRE(got);
    CHECK(codec::decode<proto::ErrorReply>(got->body)->code ==
          static_cast<std::uint16_t>(ErrorCode::too_many));
    ++refused;
  }
  CHECK(refused == 4);
  // An answer makes room for another request.
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
    "two open requests cannot have the same number; a closed connection's requests still count") {
  JobWithSocket n(kUnhurried);
  const auto code = [&] {
    const auto got = n.inside->receive(seconds(20));
    REQUIRE(got);
    return static_cast<ErrorCode>(codec::decode<proto::ErrorReply>(got->body)->code);
  };
  // A second request with the same number is refused, because a job could otherwise have any number
  // of requests open.
  n.ask(kPing, "");
  n.ask(kPing, "");
  CHECK(code() == ErrorCode::invalid_argument);
  const auto first = n.ctld.expect<proto::NodeRelay>();
  CHECK(n.ctld.nothing<proto::NodeRelay>(milliseconds(200)));
  n.ctld.send(proto::RelayReply{first.channel, kPing, first.request, {}});
  REQUIRE(n.inside->receive(seconds(20)));
  // Sends as many requests as may wait, and closes the connection; the controller does not answer.
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

TEST_CASE(
    "strangers without a ticket neither block a step's stream nor use up the daemon's files") {
  JobWithSocket n(kUnhurried);
  // This is the number of files that the daemon asks for if its limit is lower.
  const rlimit daemons{4'608, 4'608};
  REQUIRE(::prlimit(n.node.pid(), RLIMIT_NOFILE, &daemons, nullptr) == 0);
  const rlimit files{8'192, 8'192};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &files) == 0);
  n.ask(static_cast<std::uint16_t>(proto::MessageType::StepListen),
        codec::encode(proto::StepListen{}));
  const auto got = n.inside->receive(seconds(20));
  REQUIRE(got);
  const auto listening = codec::decode<proto::StepListening>(got->body);
  REQUIRE(listening);
  const std::string& address = listening->address;
  std::vector<net::Socket> silent;
  for (int i = 0; i < 4'200; ++i) {
    auto one = net::connect_to(address, net::Deadline(seconds(5)));
    REQUIRE(one);
    silent.push_back(std::move(*one));
  }
  // The daemon's other work goes on: it takes commands of jobs, and starts a job.
  std::vector<net::JobSocketClient> commands;
  for (int i = 0; i < 20; ++i) {
    auto command = net::JobSocketClient::connect(n.path, seconds(5));
    REQUIRE(command);
    commands.push_back(std::move(*command));
  }
  n.ctld.send(n.job(2, "exit 5\n"));
  CHECK(exit_of(n.ctld, 2).exit == ExitStatus{5, 0});
  auto stream = net::connect_to(address, net::Deadline(seconds(5)));
  REQUIRE(stream);
  const auto crypt = net::SecureStream::create(
      net::StreamRole::dialler, std::string(net::kStreamKeyBytes, 'k'), listening->ticket);
  REQUIRE(crypt);
  REQUIRE(net::write_some(stream->fd(), crypt->output()));
  // The node passes the stream on together with one byte of data.
  REQUIRE(net::wait_for(n.inside->descriptor(), net::Wait::read, net::Deadline(seconds(9))));
  char byte = 0;
  REQUIRE(net::read_some(n.inside->descriptor(), &byte, 1));
  CHECK(byte == 'S');
  n.end();
}

TEST_CASE("a job that opens all the connections it may does not end a daemon with few files") {
  // Each connection takes two descriptors, so with either limit only one is left at the end.
  rlim_t limit = 300;
  SUBCASE("an even number of files") {}
  SUBCASE("an odd number of files") {
    ++limit;
  }
  JobWithSocket n(kUnhurried);
  const rlimit daemons{limit, limit};
  REQUIRE(::prlimit(n.node.pid(), RLIMIT_NOFILE, &daemons, nullptr) == 0);
  std::vector<net::JobSocketClient> commands;
  for (int i = 0; i < 256; ++i)
    if (auto command = net::JobSocketClient::connect(n.path, seconds(5)))
      commands.push_back(std::move(*command));
  const net::MessageHeader listen{proto::kProtocolVersion,
                                  static_cast<std::uint16_t>(proto::MessageType::StepListen), 1};
  std::size_t taken = 0;  // connections that the daemon kept open
  for (net::JobSocketClient& command : commands)
    if (command.send(listen, codec::encode(proto::StepListen{}), seconds(5)) &&
        command.receive(seconds(5)))
      ++taken;
  CHECK(taken > 50);
  n.ctld.send(n.job(2, "exit 5\n"));
  CHECK(exit_of(n.ctld, 2).exit == ExitStatus{5, 0});
  n.end();
}

// The processor time of a process, in clock ticks of 10 ms.
std::int64_t ticks_of(pid_t pid) {
  const std::string stat = read_text("/proc/" + std::to_string(pid) + "/stat");
  std::istringstream in(stat.substr(stat.rfind(')') + 2));
  std::string skipped;
  for (int i = 3; i < 14; ++i) in >> skipped;
  std::int64_t user = 0, system = 0;
  in >> user >> system;
  return user + system;
}

TEST_CASE("an incomplete ticket costs the node no processor time, and a complete one is accepted") {
  JobWithSocket n(kUnhurried);
  n.ask(static_cast<std::uint16_t>(proto::MessageType::StepListen),
        codec::encode(proto::StepListen{}));
  const auto got = n.inside->receive(seconds(20));
  REQUIRE(got);
  const auto listening = codec::decode<proto::StepListening>(got->body);
  REQUIRE(listening);
  rlimit files{8'192, 8'192};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &files) == 0);
  std::vector<net::Socket> begun;
  const auto begin = [&](std::string_view bytes) {
    auto one = net::connect_to(listening->address, net::Deadline(seconds(5)));
    REQUIRE(one);
    REQUIRE(net::write_some(one->fd(), bytes));
    begun.push_back(std::move(*one));
  };
  const auto crypt = net::SecureStream::create(
      net::StreamRole::dialler, std::string(net::kStreamKeyBytes, 'k'), listening->ticket);
  REQUIRE(crypt);
  for (int i = 0; i < 900; ++i) begin("GSS1");
  begin(crypt->output().substr(0, 20));
  const std::int64_t before = ticks_of(n.node.pid());
  ::sleep(3);
  CHECK(ticks_of(n.node.pid()) - before < 20);
  REQUIRE(net::write_some(begun.back().fd(), crypt->output().substr(20)));
  REQUIRE(net::wait_for(n.inside->descriptor(), net::Wait::read, net::Deadline(seconds(9))));
  char byte = 0;
  REQUIRE(net::read_some(n.inside->descriptor(), &byte, 1));
  CHECK(byte == 'S');
  n.end();
}

TEST_CASE("after a restart of the daemon a job's socket exists again") {
  JobWithSocket n;
  n.ask(kPing, codec::encode(proto::Ping{}));
  const auto channel = n.ctld.expect<proto::NodeRelay>().channel;
  n.node.stop(SIGKILL);
  n.ctld.forget_seen();
  n.node.start();
  n.ctld.accept();
  // By now the node has its session; before that it relays nothing.
  (void)n.ctld.expect<proto::Heartbeat>();
  n.connect();
  n.ask(kPing, "");
  CHECK(n.ctld.expect<proto::NodeRelay>().channel > channel);
  n.end();
}
}  // namespace
}  // namespace gantry::test
