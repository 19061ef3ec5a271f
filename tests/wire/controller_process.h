// Runs a real gantry-ctld on loopback as a process of the test.
#pragma once

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
#include <map>
#include <sstream>
#include <string>
#include <utility>

#include "common/auth/signature.h"
#include "common/net/client.h"
#include "common/net/keys.h"
#include "common/proto/messages.h"
#include "common/time/time.h"
#include "tests/eventually.h"
#include "tests/places.h"

namespace gantry::test {

inline int free_port() {
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

// The registration of a small node that has heard of no controller and runs nothing.
inline proto::NodeRegister registration(const std::string& name) {
  proto::NodeRegister message;
  message.node = name;
  message.protocol = proto::kProtocolVersion;
  message.boot_id = "boot";
  message.cpus = {0};
  message.memory = std::int64_t{1} << 30;
  return message;
}

// A gantry-ctld process. Its nodes never connect unless the test plays them.
class Controller {
 public:
  // The keys of enrolled nodes, by the name of the node.
  using NodeKeys = std::map<std::string, net::PublicKey>;

  // `more` holds options for the section `controller:`, each as "name: value, ". `nodes` is a host
  // list, or the entries of the section `nodes:`. `enrolled` are nodes whose keys are known. `rest`
  // holds more sections.
  explicit Controller(const std::string& more = "", const std::string& nodes = "n1",
                      const NodeKeys& enrolled = {}, const std::string& rest = "")
      : keys_(net::generate_key_pair()), port_(free_port()) {
    char name[] = "/tmp/gantry-wire-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    directory_ = name;
    REQUIRE(net::save_key_pair(directory_ + "/key", keys_));
    std::filesystem::create_directories(directory_ + "/state/users.d");
    std::filesystem::permissions(directory_ + "/state", std::filesystem::perms::owner_all);
    for (const auto& [user, key] : {std::pair{"root", &root_}, std::pair{"nobody", &nobody_}})
      std::ofstream(fmt::format("{}/state/users.d/{}.pub", directory_, user))
          << net::to_hex(key->verify_key.view()) << "\n";
    std::filesystem::create_directories(directory_ + "/state/nodes.d");
    for (const auto& [node, key] : enrolled)
      std::ofstream(fmt::format("{}/state/nodes.d/{}.pub", directory_, node))
          << net::to_z85(key) << "\n";
    std::ofstream(directory_ + "/gantry.yaml") << fmt::format(
        "controller: {{{2}port: {1}, state_dir: {0}/state, secret_key_file: {0}/key, "
        "public_key_file: {0}/pub, allow_munge: false}}\n"
        "nodes: [{5}]\n{4}",
        directory_, port_, more, "", rest,
        nodes.starts_with('{') ? nodes : fmt::format("{{name: '{}', cpus: 1, memory: 1G}}", nodes));
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      const int log = ::open((directory_ + "/log").c_str(), O_WRONLY | O_CREAT, 0600);
      ::dup2(log, 1);
      ::dup2(log, 2);
      ::execl((program_dir() + "/gantry-ctld").c_str(), "gantry-ctld", "--config",
              (directory_ + "/gantry.yaml").c_str(), nullptr);
      ::_exit(127);
    }
  }
  ~Controller() {
    if (pid_ > 0) {
      ::kill(pid_, SIGTERM);
      ::waitpid(pid_, nullptr, 0);
    }
    std::filesystem::remove_all(directory_);
  }
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  [[nodiscard]] bool lives() const { return ::waitpid(pid_, nullptr, WNOHANG) == 0; }
  // The processor time that the controller's loop has used.
  [[nodiscard]] Duration loop_cpu() const {
    std::ifstream file(fmt::format("/proc/{0}/task/{0}/stat", pid_));
    std::string stat(std::istreambuf_iterator<char>(file), {});
    std::istringstream fields(stat.substr(stat.rfind(')') + 1));
    std::string skipped;
    for (int i = 0; i < 11; ++i) fields >> skipped;
    std::int64_t user = 0, system = 0;  // both in clock ticks
    fields >> user >> system;
    return {(user + system) * 1'000'000 / ::sysconf(_SC_CLK_TCK)};
  }
  // Waits until the process has ended by itself. The result is its exit status.
  int wait_for_end() {
    int status = 0;
    REQUIRE(::waitpid(std::exchange(pid_, -1), &status, 0) > 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  // Sends the signal. The result says whether the process has ended within 30 s.
  bool ends_by(int signal) {
    ::kill(pid_, signal);
    if (!eventually([&] { return ::waitpid(pid_, nullptr, WNOHANG) == pid_; })) return false;
    pid_ = -1;
    return true;
  }
  [[nodiscard]] std::string address() const { return fmt::format("tcp://127.0.0.1:{}", port_); }
  [[nodiscard]] const net::PublicKey& key() const { return keys_.public_key; }
  // The registered keys of an administrator and of a user.
  [[nodiscard]] const auth::SigningKey& root() const { return root_; }
  [[nodiscard]] const auth::SigningKey& nobody() const { return nobody_; }
  [[nodiscard]] std::string log() const {
    std::ifstream log(directory_ + "/log");
    return std::string(std::istreambuf_iterator<char>(log), {});
  }
  // Waits until the controller listens, and connects.
  [[nodiscard]] net::Client connect() const {
    net::ClientOptions options;
    options.address = address();
    options.server_key = keys_.public_key;
    auto client = net::Client::connect(options);
    eventually(
        [&] {
          if (!client && lives()) client = net::Client::connect(options);
          return client || !lives();
        },
        std::chrono::seconds(60));
    REQUIRE_MESSAGE(client, log());
    return std::move(*client);
  }

 private:
  net::KeyPair keys_;
  auth::SigningKey root_ = auth::generate_signing_key();
  auth::SigningKey nobody_ = auth::generate_signing_key();
  int port_;
  std::string directory_;
  pid_t pid_ = -1;
};

}  // namespace gantry::test
