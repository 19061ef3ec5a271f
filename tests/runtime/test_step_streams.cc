// Tests how much memory a step's shim uses. The job's memory limit does not count it, while the
// programs that read the step's stream, write to its pipes and serve its PMI belong to the user.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <optional>

#include "common/codec/codec.h"
#include "common/net/secure_stream.h"
#include "common/proto/step_io.h"
#include "tests/eventually.h"
#include "tests/places.h"
#include "tests/runtime/node_fixture.h"

using namespace gantry;
using namespace gantry::runtime;
using namespace gantry::runtime::test;

namespace {

constexpr long kMostMemory = 64 << 10;  // KiB; a shim has about ten MiB

// The end of a step's stream that grun would have.
struct ReadersEnd {
  ReadersEnd() : listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    REQUIRE(::bind(listener.get(), reinterpret_cast<sockaddr*>(&at), size) == 0);
    REQUIRE(::listen(listener.get(), 4) == 0);
    REQUIRE(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&at), &size) == 0);
    address = "tcp://127.0.0.1:" + std::to_string(ntohs(at.sin_port));
  }
  void accept() {
    pollfd ready{listener.get(), POLLIN, 0};
    REQUIRE(::poll(&ready, 1, 20'000) == 1);
    stream.reset(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    REQUIRE(stream);
  }
  Fd listener, stream;
  std::string address;
  const std::string key = std::string(net::kStreamKeyBytes, 'k');
};

class OneStep {
 public:
  explicit OneStep(const std::string& command,
                   const std::function<void(RuntimeOptions&)>& change = {})
      : node(change), job_(node.job("")) {
    job_.kind = LaunchKind::holder;
    job_.memory = 32 << 20;
    REQUIRE(node.runtime().begin(job_));
    REQUIRE(node.wait_for(job_.key, EventKind::running));
    request.key = job_.key;
    request.step = StepId{0};
    request.argv = {"/bin/sh", "-c", command};
    request.task_env.emplace_back();
  }
  void dial(const ReadersEnd& reader) {
    request.io_address = reader.address;
    request.io_key = reader.key;
    request.io_ticket = "ticket";
  }
  void begin() {
    REQUIRE(node.runtime().begin_step(request));
    const std::string lock = node.state_dir() + "/jobs/1.1/steps/0/shim.lock";
    eventually([&] { return std::atoi(node.read(lock).c_str()) != 0; });
    shim_ = std::atoi(node.read(lock).c_str());
    REQUIRE(shim_ > 0);
  }
  // The peak memory of the shim in KiB; 0 if the shim has ended.
  [[nodiscard]] long memory() const {
    const auto status = node.read("/proc/" + std::to_string(shim_) + "/status");
    const auto at = status.find("VmHWM:");
    return at == std::string::npos ? 0 : std::atol(status.c_str() + at + 6);
  }
  // Watches the memory for `ms` milliseconds, or until it exceeds the limit.
  [[nodiscard]] long memory_after(int ms, const std::function<void()>& meanwhile = {}) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
    long most = 0;
    while (std::chrono::steady_clock::now() < end && most < kMostMemory) {
      if (meanwhile)
        meanwhile();
      else
        node.pump(20);
      most = std::max(most, memory());
    }
    return most;
  }
  void end() {
    REQUIRE(node.runtime().kill_step(request.key, request.step));
    node.wait_step(request.key, request.step);
    REQUIRE(node.runtime().kill(request.key));
    node.wait_end(request.key);
    for (const auto& left : remains(node)) FAIL_CHECK(left);
  }

  Node node;
  StepRequest request;

 private:
  LaunchRequest job_;
  int shim_ = 0;
};

}  // namespace

TEST_CASE(
    "a reader that never identifies itself holds up its tasks, but does not fill root's memory") {
  if (!can_run()) return;
  ReadersEnd reader;
  OneStep step("exec yes");
  step.dial(reader);
  step.begin();
  reader.accept();
  CHECK(step.memory_after(2'000) < kMostMemory);
  reader.stream.reset();
  step.end();
}

TEST_CASE("a process that a task leaves behind cannot hold up its step by writing on") {
  if (!can_run()) return;
  OneStep step("yes & exit 7");
  step.begin();
  const auto record = step.node.wait_step(step.request.key, step.request.step);
  CHECK(record.exit == ExitStatus{7, 0});
  REQUIRE(step.node.runtime().kill(step.request.key));
  step.node.wait_end(step.request.key);
  for (const auto& left : remains(step.node)) FAIL_CHECK(left);
}

TEST_CASE("data from a reader after the end of its step is not kept") {
  if (!can_run()) return;
  ReadersEnd reader;
  OneStep step("exit 0");
  step.dial(reader);
  step.begin();
  reader.accept();
  auto stream = net::SecureStream::create(net::StreamRole::listener, reader.key);
  REQUIRE(stream.has_value());
  const std::string frame =
      codec::encode(proto::StepFrame{proto::TaskInput{Bytes(500'000, 'x'), false}});
  std::size_t sent = 0;
  bool ended = false;
  const auto talk = [&] {
    char buffer[65536];
    const ssize_t n = ::read(reader.stream.get(), buffer, sizeof buffer);
    if (n > 0) REQUIRE(stream->feed({buffer, static_cast<std::size_t>(n)}));
    while (const auto bytes = stream->next()) ended = true;
    if (ended && stream->unsent() < frame.size()) REQUIRE(stream->send(frame));
    const auto out = stream->output();
    const ssize_t w = ::send(reader.stream.get(), out.data(), out.size(), MSG_NOSIGNAL);
    if (w > 0) stream->written(static_cast<std::size_t>(w));
    if (w > 0) sent += static_cast<std::size_t>(w);
    pollfd ready{reader.stream.get(), POLLIN | POLLOUT, 0};
    ::poll(&ready, 1, 20);
  };
  CHECK(step.memory_after(4'000, talk) < kMostMemory);
  CHECK_MESSAGE(sent > (100u << 20), sent);
  // Even if the reader keeps reading and sending, the shim does not wait for ever: the last output
  // of a step gets a minute.
  if (std::getenv("GANTRY_LONG") != nullptr) {
    const auto began = std::chrono::steady_clock::now();
    while (step.memory() > 0 && std::chrono::steady_clock::now() - began < std::chrono::seconds(90))
      talk();
    CHECK(step.memory() == 0);
  }
  reader.stream.reset();
  step.node.wait_step(step.request.key, step.request.step);
  REQUIRE(step.node.runtime().kill(step.request.key));
  step.node.wait_end(step.request.key);
}

TEST_CASE("a user's own PMI server does not fill root's memory") {
  if (!can_run()) return;
  const std::string bin = "/var/tmp/gantry-bin-" + std::to_string(::getpid());
  REQUIRE(::mkdir(bin.c_str(), 0755) == 0);
  for (const char* name : {"/gantry-shim", "/gantry-init"})
    REQUIRE(::symlink((program_dir() + name).c_str(), (bin + name).c_str()) == 0);
  REQUIRE(::symlink((program_dir() + "/../tests/flood_pmi").c_str(),
                    (bin + "/gantry-pmi2").c_str()) == 0);
  {
    OneStep step("sleep 1000", [&](RuntimeOptions& options) { options.bin_dir = bin; });
    step.request.mpi = proto::StepMpi::pmi2;
    step.request.nodes = {"n1"};
    step.request.node_tasks = {1};
    step.begin();
    CHECK(step.memory_after(2'000) < kMostMemory);
    step.end();
  }
  remove_tree(bin);
}
