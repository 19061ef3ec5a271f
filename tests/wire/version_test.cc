// A peer of another protocol version, inside an authenticated CURVE session with the real
// controller: it is told both sides' versions, and the controller goes on serving others.
#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/codec/codec.h"
#include "common/net/client.h"
#include "common/net/header.h"
#include "common/net/keys.h"
#include "common/proto/messages.h"

namespace gantry {
namespace {

constexpr Duration kSoon = seconds(60);

int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  ::close(fd);
  return ntohs(address.sin_port);
}

// gantry-ctld as a process, with one node that never comes.
class Controller {
 public:
  Controller() : keys_(net::generate_key_pair()), port_(free_port()) {
    char name[] = "/tmp/gantry-version-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    directory_ = name;
    REQUIRE(net::save_key_pair(directory_ + "/key", keys_));
    std::ofstream(directory_ + "/gantry.yaml") << fmt::format(
        "controller: {{port: {1}, state_dir: {0}/state, secret_key_file: {0}/key, "
        "public_key_file: {0}/pub, allow_munge: false}}\n"
        "nodes: [{{name: n1, cpus: 1, memory: 1G}}]\n",
        directory_, port_);
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      const int log = ::open((directory_ + "/log").c_str(), O_WRONLY | O_CREAT, 0600);
      ::dup2(log, 1);
      ::dup2(log, 2);
      ::execl(GANTRY_BIN_DIR "/gantry-ctld", "gantry-ctld", "--config",
              (directory_ + "/gantry.yaml").c_str(), nullptr);
      ::_exit(127);
    }
  }
  ~Controller() {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
    std::filesystem::remove_all(directory_);
  }
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  [[nodiscard]] bool lives() const { return ::waitpid(pid_, nullptr, WNOHANG) == 0; }
  [[nodiscard]] net::Client connect() const {
    net::ClientOptions options;
    options.address = fmt::format("tcp://127.0.0.1:{}", port_);
    options.server_key = keys_.public_key;
    auto client = net::Client::connect(options);
    for (int tries = 0; !client && tries < 600 && lives(); ++tries) {
      // tidy-allow(sleep): the process tells nobody when it listens
      ::usleep(100'000);
      client = net::Client::connect(options);
    }
    std::ifstream log(directory_ + "/log");
    REQUIRE_MESSAGE(client, std::string(std::istreambuf_iterator<char>(log), {}));
    return std::move(*client);
  }

 private:
  net::KeyPair keys_;
  int port_;
  std::string directory_;
  pid_t pid_ = -1;
};

struct Answer {
  net::MessageHeader header;
  Bytes body;
};

template <class Message>
Answer ask(net::Client& client, std::uint16_t protocol, std::uint64_t request,
           const Message& message) {
  const net::HeaderBytes header(
      {protocol, static_cast<std::uint16_t>(proto::number_of<Message>), request});
  REQUIRE(client.send(header.view(), codec::encode(message), kSoon));
  auto frames = client.receive(kSoon);
  REQUIRE_MESSAGE(frames, frames.error().message);
  REQUIRE(frames->size() == net::kFrames);
  const auto decoded = net::decode_header((*frames)[0]);
  REQUIRE(decoded);
  return {*decoded, std::move((*frames)[1])};
}

void check_refused(const Answer& answer, std::uint64_t request, std::uint16_t theirs) {
  CHECK(answer.header.protocol == proto::kProtocolVersion);
  CHECK(answer.header.request == request);
  REQUIRE(answer.header.type == static_cast<std::uint16_t>(proto::MessageType::ErrorReply));
  const auto error = codec::decode<proto::ErrorReply>(answer.body);
  REQUIRE(error);
  CHECK(error->code == static_cast<std::uint16_t>(ErrorCode::version_mismatch));
  CHECK(error->message ==
        fmt::format("you speak protocol {}, this controller {} to {}; install matching versions",
                    theirs, proto::kOldestProtocol, proto::kProtocolVersion));
}

void check_served(net::Client& client, std::uint64_t request) {
  const auto hello = ask(client, proto::kProtocolVersion, request, proto::Hello{});
  REQUIRE(hello.header.type == static_cast<std::uint16_t>(proto::MessageType::HelloReply));
  CHECK(codec::decode<proto::HelloReply>(hello.body)->protocol == proto::kProtocolVersion);
  const auto ping = ask(client, proto::kProtocolVersion, request + 1, proto::Ping{});
  CHECK(ping.header.type == static_cast<std::uint16_t>(proto::MessageType::PingReply));
}

}  // namespace

TEST_CASE("a peer of another protocol version is told so, and the controller lives on") {
  const Controller controller;
  net::Client other = controller.connect();  // has served before, and does so afterwards
  check_served(other, 1);
  for (const std::uint16_t theirs : {0, 2, 99, 65535}) {
    net::Client client = controller.connect();
    // In the header, whatever the message is: a newer Hello may not even be readable.
    check_refused(ask(client, theirs, 7, proto::Hello{theirs, "old"}), 7, theirs);
    check_refused(ask(client, theirs, 8, proto::Ping{}), 8, theirs);
    check_refused(ask(client, theirs, 9, proto::CancelJobs{}), 9, theirs);
    // In the Hello alone: a peer that means another version than it writes.
    check_refused(ask(client, proto::kProtocolVersion, 10, proto::Hello{theirs, "old"}), 10,
                  theirs);
    check_served(client, 11);  // the session is not spoilt
  }
  check_served(other, 3);
  CHECK(controller.lives());
}

}  // namespace gantry
