// Tests the port on which srun waits for a step's streams, and strangers who connect to it. A child
// process runs the code of srun for a step of one node and may open few files; this process plays
// the node and the strangers.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "cli/step/step_launch.h"
#include "cli/step/step_streams.h"
#include "common/codec/codec.h"
#include "common/net/listen.h"

namespace gantry::test {
namespace {

constexpr int kFiles = 128;  // the number of files that srun may have open here

const std::string kKey(net::kStreamKeyBytes, 'k');

// Runs srun's part in a child process, which listens when the constructor returns.
class Srun {
 public:
  Srun() {
    const auto node = net::listen_at("tcp://127.0.0.1:0", 1);  // opened only to get a free address
    REQUIRE(node);
    permission_.tasks = 1;
    proto::StepNode here;
    here.node = "n1";
    here.address = node->endpoint.substr(std::string_view("tcp://").size());
    here.tasks = 1;
    permission_.nodes = {here};
    auto source = cli::listen_for_streams(permission_);
    REQUIRE(source);
    address = (*source)->address();
    ticket = (*source)->ticket();
    pid_ = ::fork();
    if (pid_ != 0) return;
    const rlimit files{kFiles, kFiles};
    ::setrlimit(RLIMIT_NOFILE, &files);
    cli::StepOptions options;
    options.input = cli::StepInput::none;
    cli::StepStreams streams("srun", permission_, kKey, options);
    const auto result = streams.run(**source);
    ::_exit(result ? result->exit_status : 99);
  }
  ~Srun() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    (void)end();
  }
  Srun(const Srun&) = delete;
  Srun& operator=(const Srun&) = delete;
  // Returns the exit status of srun, or -1 when a signal ended it.
  int end() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  [[nodiscard]] net::Socket connect() const {
    auto socket = net::connect_to(address, net::Deadline(seconds(5)));
    REQUIRE(socket);
    return std::move(*socket);
  }

  std::string address;
  Bytes ticket;

 private:
  proto::StepPermission permission_;
  pid_t pid_ = -1;
};

// Plays the shim of a step with one task.
class Shim {
 public:
  explicit Shim(const Srun& srun)
      : socket_(srun.connect()),
        crypt_(std::move(*net::SecureStream::create(net::StreamRole::dialler, kKey, srun.ticket))) {
  }
  void say(const proto::StepFrame& frame) {
    REQUIRE(crypt_.send(codec::encode(frame)));
    REQUIRE(net::write_all(socket_.fd(), crypt_, seconds(10)));
  }
  // Returns when srun has proved that it has the key and has sent a frame: then it knows this node.
  void greet() {
    say({proto::StepHello{"n1", 0, 1}});
    // srun sends this frame because the step has no input.
    const auto frame = net::read_frame(socket_.fd(), crypt_, seconds(10));
    REQUIRE(frame);
  }
  void end(int code) {
    say({proto::TaskExit{0, {code, 0}, ""}});
    say({proto::StepNodeDone{}});
  }

 private:
  net::Socket socket_;
  net::SecureStream crypt_;
};

// Returns true once the other end has closed the connection; bytes received before are discarded.
bool is_closed(const net::Socket& socket, Duration patience) {
  const net::Deadline end(patience);
  char bytes[4096];
  while (net::wait_for(socket.fd(), net::Wait::read, end)) {
    const auto n = net::read_some(socket.fd(), bytes, sizeof bytes);
    if (!n) return true;
  }
  return false;
}

TEST_CASE("strangers who connect to srun's port do not use up its files or take the node's place") {
  Srun srun;
  std::vector<net::Socket> strangers;
  for (int i = 0; i < 3 * kFiles; ++i) strangers.push_back(srun.connect());
  Shim shim(srun);
  shim.greet();
  // the oldest stranger was closed to make room for others
  CHECK(is_closed(strangers.front(), seconds(10)));
  shim.end(7);
  CHECK(srun.end() == 7);
}

TEST_CASE("a stranger without the key makes srun keep no more than a few bytes") {
  Srun srun;
  const net::Socket stranger = srun.connect();
  auto crypt = net::SecureStream::create(net::StreamRole::dialler, std::string(kKey.size(), 'x'),
                                         srun.ticket);
  REQUIRE(crypt);
  std::string bytes(crypt->output());
  bytes += std::string(24, 's');  // the first bytes of a stream
  // the head of a frame of 1 MiB, of which only a part is sent
  bytes += std::string("\0\0\x10\0", 4);
  bytes += std::string(100, 'f');
  REQUIRE(net::write_some(stranger.fd(), bytes) == bytes.size());
  CHECK(is_closed(stranger, seconds(10)));
  Shim shim(srun);
  shim.greet();
  shim.end(3);
  CHECK(srun.end() == 3);
}

TEST_CASE("when all nodes of a step have connected, srun takes no more connections") {
  Srun srun;
  Shim shim(srun);
  shim.greet();
  const net::Socket late = srun.connect();
  REQUIRE(net::write_some(late.fd(), "GET / HTTP/1.0\r\n\r\n"));
  shim.say({proto::TaskOutput{0, false, Bytes()}});
  // nobody reads from this connection, so nobody refuses it
  CHECK(!is_closed(late, milliseconds(300)));
  shim.end(0);
  CHECK(srun.end() == 0);
}

}  // namespace
}  // namespace gantry::test
