// Tests steps through the socket of a job and over its node's network, with the daemon as a
// process: which addresses a shim may dial, what a job gets of a stream, and how many launches may
// wait.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "common/auth/signature.h"
#include "common/net/client.h"
#include "common/net/keys.h"
#include "common/net/listen.h"
#include "common/net/secure_stream.h"
#include "noded/steps/step_service.h"
#include "tests/noded/job_with_socket.h"

namespace gantry::test {
namespace {

// A node that knows its controller's key for permissions, a job on it, and a permission for that
// job.
struct JobWithSteps : JobWithSocket {
  auth::SigningKey controller_key = auth::generate_signing_key();
  proto::StepPermission permission;

  JobWithSteps() {
    ctld.permission_key = Bytes(controller_key.verify_key.view());
    node.stop(SIGTERM);
    ctld.forget_seen();
    node.start();
    facts = ctld.accept();
    (void)ctld.expect<proto::Heartbeat>();  // by now the node knows the key
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
  // Returns the node's answer to `message` on the job's socket, or to a client of its ROUTER.
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

TEST_CASE("a shim dials the host that asks for a step or the job's own node, and no other") {
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
  CHECK(own.first.empty());  // the step is launched, but nobody listens for its shim

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
  both(inside(listening.address, kTicket), kNotHere);  // the ticket does not belong to this job
  CHECK(inside(listening.address, listening.ticket).first.empty());
  n.end();
}

// Receives the descriptor that is sent with one byte over the job's socket.
net::Socket passed_descriptor(int socket) {
  REQUIRE(net::wait_for(socket, net::Wait::read, net::Deadline(seconds(9))));
  char byte = 0;
  int fd = -1;
  iovec io{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  msghdr message{};
  message.msg_iov = &io;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  REQUIRE(::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) == 1);
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  REQUIRE(header != nullptr);
  std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return net::Socket(fd);
}

// A shim's connection to the node's port for streams, and the job's end of that stream.
struct StreamOfJob {
  net::Socket shim, job;
  explicit StreamOfJob(JobWithSteps& n) {
    const auto listening = n.listen();
    auto connected = net::connect_to(listening.address, net::Deadline(seconds(5)));
    REQUIRE(connected);
    shim = std::move(*connected);
    const auto crypt = net::SecureStream::create(
        net::StreamRole::dialler, std::string(net::kStreamKeyBytes, 'k'), listening.ticket);
    REQUIRE(crypt);
    hello = crypt->output();
    REQUIRE(net::write_some(shim.fd(), hello));
    job = passed_descriptor(n.inside->descriptor());
    ::fcntl(job.fd(), F_SETFL, O_NONBLOCK);
    CHECK(read(job, hello.size()) == hello);
  }
  // Reads `size` bytes, or everything until the end.
  static std::string read(const net::Socket& socket, std::size_t size) {
    std::string all;
    std::string piece(64u << 10, ' ');
    while (all.size() < size) {
      REQUIRE(net::wait_for(socket.fd(), net::Wait::read, net::Deadline(seconds(9))));
      const auto n = net::read_some(socket.fd(), piece.data(), piece.size());
      if (!n) break;
      all.append(piece, 0, *n);
    }
    return all;
  }
  std::string hello;
};

TEST_CASE("a job's program gets no socket of the host's network") {
  JobWithSteps n;
  const StreamOfJob stream(n);
  int domain = 0;
  socklen_t size = sizeof domain;
  REQUIRE(::getsockopt(stream.job.fd(), SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0);
  CHECK(domain == AF_UNIX);
  // With an internet socket the program could disconnect it and connect to another service of the
  // host.
  const auto service = net::listen_at("tcp://127.0.0.1:0", 4);
  REQUIRE(service);
  const auto port =
      net::split_address(service->endpoint.substr(std::string("tcp://").size()))->port;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(port)));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr none{};
  none.sa_family = AF_UNSPEC;
  (void)::connect(stream.job.fd(), &none, sizeof none);
  CHECK(::connect(stream.job.fd(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0);
  CHECK(errno != EINPROGRESS);
  CHECK(!net::wait_for(service->socket.fd(), net::Wait::read, net::Deadline(milliseconds(200))));
  n.end();
}

TEST_CASE(
    "a stream passes the relay complete, even without the daemon; each direction ends alone") {
  JobWithSteps n;
  StreamOfJob stream(n);
  n.node.stop(SIGKILL);
  const auto whole = [](const net::Socket& from, const net::Socket& to) {
    std::string sent, got;
    for (std::uint32_t i = 0; i < 2'000'000; ++i) sent += static_cast<char>(i * 2654435761u >> 24);
    std::string_view rest = sent;
    std::string piece(64u << 10, ' ');
    // Both ends are used by this thread, so it must not block on one of them.
    while (got.size() < sent.size()) {
      if (!rest.empty()) rest.remove_prefix(*net::write_some(from.fd(), rest));
      if (rest.empty()) (void)net::wait_for(to.fd(), net::Wait::read, net::Deadline(seconds(9)));
      const auto n = net::read_some(to.fd(), piece.data(), piece.size());
      REQUIRE(n);
      got.append(piece, 0, *n);
    }
    return got == sent;
  };
  CHECK(whole(stream.shim, stream.job));
  CHECK(whole(stream.job, stream.shim));
  ::shutdown(stream.shim.fd(), SHUT_WR);
  CHECK(StreamOfJob::read(stream.job, 1).empty());
  CHECK(whole(stream.job, stream.shim));
  { const net::Socket closes = std::move(stream.job); }
  CHECK(StreamOfJob::read(stream.shim, 1).empty());
  n.ctld.forget_seen();
  n.node.start();
  n.ctld.accept();
  n.end();
}

TEST_CASE(
    "the number of launches that wait for another node is limited, as each has a connection") {
  JobWithSteps n;
  // The other node accepts connections and never answers.
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

}  // namespace
}  // namespace gantry::test
