// A command on a login node: it uses the socket named in client.conf, and falls back to CURVE if
// the socket is missing, refuses, or is silent. The daemon at the socket is a thread of this test,
// or a process of another user.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <thread>

#include "cli/client_config.h"
#include "common/net/socket.h"
#include "common/net/stream_frame.h"
#include "tests/cli/fake_controller.h"
#include "tests/skip.h"

using namespace gantry;
using namespace gantry::test;

namespace {

enum class Says : std::uint8_t {
  answers,         // everything, as the controller would
  other_cluster,   // refuses the greeting
  prove_yourself,  // greets, then refuses the request as the controller does
  alive_then_no,   // reports that it is alive, and later refuses the request
  no_link,         // refuses the request, as it has no connection
  nothing,         // is silent
  closes,          // reads the request and closes
  busy             // has too many requests
};

net::Socket listen_at(const std::string& path) {
  net::Socket listener(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  REQUIRE(::bind(listener.fd(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::chmod(path.c_str(), 0666) == 0);
  REQUIRE(::listen(listener.fd(), 16) == 0);
  return listener;
}

// A node daemon for one connection after the other.
class FakeNode {
 public:
  FakeNode(const std::string& path, Says says) : says_(says), listener_(listen_at(path)) {
    thread_ = std::thread([this] { serve(); });
  }
  ~FakeNode() {
    ::shutdown(listener_.fd(), SHUT_RDWR);
    thread_.join();
  }
  std::atomic<int> greetings = 0, requests = 0;

 private:
  template <class T>
  static void send(int fd, std::uint64_t request, const T& message) {
    Bytes out;
    net::append_frame(
        out, {proto::kProtocolVersion, static_cast<std::uint16_t>(proto::number_of<T>), request},
        codec::encode(message));
    (void)!::send(fd, out.data(), out.size(), MSG_NOSIGNAL);
  }
  static void refuse(int fd, std::uint64_t request, ErrorCode code) {
    send(fd, request, proto::ErrorReply{static_cast<std::uint16_t>(code), "no"});
  }
  // Returns false if the connection must be closed.
  bool handle(int fd, const net::StreamMessage& m) {
    if (m.header.type == static_cast<std::uint16_t>(proto::MessageType::SocketHello)) {
      ++greetings;
      if (says_ == Says::other_cluster) refuse(fd, m.header.request, ErrorCode::wrong_state);
      return true;
    }
    ++requests;
    switch (says_) {
      case Says::prove_yourself: refuse(fd, m.header.request, ErrorCode::unauthenticated); break;
      case Says::alive_then_no:
        send(fd, 1, proto::Ok{});
        // tidy-allow(sleep): the refusal is to come some time after the sign of life
        ::usleep(50'000);
        refuse(fd, m.header.request, ErrorCode::unauthenticated);
        break;
      case Says::no_link: refuse(fd, m.header.request, ErrorCode::unavailable); break;
      case Says::busy: refuse(fd, m.header.request, ErrorCode::too_many); break;
      case Says::closes: return false;
      case Says::answers: {
        proto::SubmitReply reply;
        reply.job = JobId{7};
        reply.partition = "batch";
        send(fd, m.header.request, reply);
        break;
      }
      default: break;
    }
    return true;
  }
  void serve() {
    while (true) {
      const net::Socket one(::accept(listener_.fd(), nullptr, nullptr));
      if (one.fd() < 0) return;
      net::StreamFrames frames;
      char buffer[65536];
      bool open = true;
      for (ssize_t n = 0; open && (n = ::read(one.fd(), buffer, sizeof buffer)) > 0;) {
        frames.feed({buffer, static_cast<std::size_t>(n)});
        for (auto m = frames.next(); open && m && *m; m = frames.next())
          open = handle(one.fd(), **m);
      }
    }
  }

  Says says_;
  net::Socket listener_;
  std::thread thread_;
};

std::string file_text(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct LoginNode {
  FakeController ctld;
  ScratchDir files;
  std::string path = files.path() + "/cli.sock";

  LoginNode() { accept_job(ctld); }
  Run run(std::vector<std::string> argv, const std::string& socket = {}) {
    const std::string conf = file_text(ctld.environment().at("GANTRY_CONF") + "/client.conf");
    const std::string named = socket.empty() ? path : socket;
    const std::string own = files.file("client.conf", conf + "socket = " + named + "\n");
    return ctld.run(std::move(argv), "#!/bin/sh\n", {{"GANTRY_CONF", own}});
  }
  [[nodiscard]] std::size_t proved() { return ctld.count(proto::MessageType::Authenticate); }
  [[nodiscard]] std::size_t submitted() { return ctld.count(proto::MessageType::SubmitJob); }
};

}  // namespace

TEST_CASE("a command asks by the socket of the login node, without a connection of its own") {
  LoginNode n;
  const FakeNode node(n.path, Says::answers);
  const Run run = n.run({"gbatch"});
  CHECK_MESSAGE(run.out == "Submitted batch job 7\n", run.err);
  CHECK(node.greetings == 1);
  CHECK(n.proved() == 0);
}

TEST_CASE("where the socket is of no use, the command goes on over CURVE, and asks once") {
  for (const Says says : {Says::other_cluster, Says::prove_yourself, Says::alive_then_no,
                          Says::no_link, Says::closes, Says::nothing}) {
    CAPTURE(static_cast<int>(says));
    LoginNode n;
    const FakeNode node(n.path, says);
    const Run run = n.run({"gbatch"});
    CHECK_MESSAGE(run.out == "Submitted batch job 42\n", run.err);
    CHECK(node.greetings == 1);
    CHECK(n.proved() == 1);
    CHECK(n.submitted() == 1);
  }
}

TEST_CASE("a socket that is not there, or is none, costs nothing") {
  LoginNode n;
  CHECK(n.run({"gbatch"}).out == "Submitted batch job 42\n");
  CHECK(n.run({"gbatch"}, "none").out == "Submitted batch job 42\n");
  CHECK(n.run({"gbatch"}, "/" + std::string(200, 'x')).out == "Submitted batch job 42\n");
  CHECK(n.run({"gbatch"}, "relative").err.find("neither the path of a socket nor none") !=
        std::string::npos);
  CHECK(n.proved() == 3);
}

TEST_CASE("what asking twice would do twice is not asked again when the daemon is gone") {
  LoginNode n;
  const FakeNode node(n.path, Says::closes);
  const Run run = n.run({"gctl", "hold", "5"});
  CHECK(run.status != 0);
  CHECK(node.requests == 1);
  CHECK(n.ctld.count(proto::MessageType::HoldJobs) == 0);
}

TEST_CASE("what needs a credential never goes by the socket") {
  LoginNode n;
  const FakeNode node(n.path, Says::answers);
  (void)n.run({"slurm/scontrol", "token"});
  CHECK(node.requests == 0);
  CHECK(n.ctld.count(proto::MessageType::MakeToken) == 1);
}

TEST_CASE("a socket of another user is not trusted") {
  if (::geteuid() != 0) SKIP_CASE("only root can be two users");
  LoginNode n;
  REQUIRE(::chmod(n.files.path().c_str(), 0777) == 0);
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(1);
    const net::Socket listener = listen_at(n.path);
    (void)!::write(ready[1], "r", 1);
    ::pause();
    ::_exit(0);
  }
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  CHECK(n.run({"gbatch"}).out == "Submitted batch job 42\n");
  CHECK(n.proved() == 1);
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
}
