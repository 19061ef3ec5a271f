#include "tests/noded/fake_controller.h"
#include "tests/places.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>

namespace gantry::test {

Instant FakeController::now() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return {std::int64_t{t.tv_sec} * 1'000'000 + t.tv_nsec / 1000};
}

FakeController::FakeController() : keys_(net::generate_key_pair()) {
  net::RouterOptions options;
  options.endpoints = {"tcp://127.0.0.1:*"};
  options.keys = keys_;
  auto router = net::Router::open(options);
  REQUIRE(router);
  router_.emplace(std::move(*router));
}

std::uint16_t FakeController::port() const {
  const std::string& bound = router_->endpoints().at(0);
  return static_cast<std::uint16_t>(std::stoi(bound.substr(bound.rfind(':') + 1)));
}

bool FakeController::receive(Duration limit) {
  const auto until = now() + limit;
  while (true) {
    if (auto message = router_->receive()) {
      const auto header = net::decode_header(message->header);
      REQUIRE(header);
      peer_ = message->peer;
      if (header->type == static_cast<std::uint16_t>(proto::MessageType::Heartbeat)) {
        const auto beat = codec::decode<proto::Heartbeat>(message->body);
        REQUIRE(beat);
        send(proto::HeartbeatAck{{Epoch{epoch}, beat->session, 0}, beat->sent});
      }
      seen_.push_back({header->type, std::move(message->body)});
      return true;
    }
    const auto left = (until - now()).us / 1000;
    if (left <= 0) return false;
    if (router_->readable()) continue;
    pollfd fd{router_->descriptor(), POLLIN, 0};
    ::poll(&fd, 1, static_cast<int>(std::min<std::int64_t>(left, 50)));
  }
}

proto::NodeRegister FakeController::accept(std::vector<proto::AttemptKey> kill) {
  auto registration = expect<proto::NodeRegister>();
  // If there are several registrations, only the last one counts.
  while (true) {
    receive(Duration{});
    bool more = false;
    for (const auto& s : seen_)
      more |= s.type == static_cast<std::uint16_t>(proto::MessageType::NodeRegister);
    if (!more) break;
    registration = expect<proto::NodeRegister>();
  }
  proto::NodeAccept answer;
  answer.stamp = {Epoch{epoch}, ++session_, 0};
  seq_ = 0;
  answer.heartbeat = heartbeat;
  answer.fence_after = fence_after;
  answer.permission_key = permission_key;
  answer.heard = registration.sent;
  answer.kill = std::move(kill);
  send(answer);
  return registration;
}

namespace {

std::string cgroup_root() {
  return "gantry-test-" + std::to_string(::getpid());
}

// Ends processes that a failed test left running, and removes the node's cgroups from every
// hierarchy.
void remove_cgroups() {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<fs::path> roots{fs::path("/sys/fs/cgroup") / cgroup_root()};
  for (const auto& entry : fs::directory_iterator("/sys/fs/cgroup", error))
    roots.push_back(entry.path() / cgroup_root());
  for (const auto& root : roots) {
    if (!fs::is_directory(root, error)) continue;
    std::vector<fs::path> folders{root};
    for (const auto& entry : fs::recursive_directory_iterator(root, error))
      if (entry.is_directory(error)) folders.push_back(entry.path());
    std::sort(folders.rbegin(), folders.rend());  // children first
    for (const auto& folder : folders) {
      std::ifstream pids(folder / "cgroup.procs");
      for (pid_t pid = 0; pids >> pid;) ::kill(pid, SIGKILL);
      ::rmdir(folder.c_str());
    }
  }
}

}  // namespace

NodeUnderTest::NodeUnderTest(const FakeController& controller, const std::string& runtime,
                             const std::string& login_nodes) {
  char name[] = "/tmp/gantry-node-test-XXXXXX";
  REQUIRE(::mkdtemp(name) != nullptr);
  dir_ = name;
  ::chmod(name, 0755);
  std::ofstream(dir_ + "/ctld.pub") << net::to_z85(controller.keys().public_key) << "\n";
  REQUIRE(net::save_key_pair(dir_ + "/node.key", net::generate_key_pair()));
  std::ofstream(dir_ + "/gantry.yaml")
      << "cluster: test\n"
      << "controller: {host: 127.0.0.1, port: " << controller.port()
      << ", public_key_file: " << dir_ << "/ctld.pub, login_nodes: [" << login_nodes << "]}\n"
      << "noded: {runtimes: [" << runtime
      << "], allow_root_jobs: true, cgroup_root: " << cgroup_root() << "}\n"
      << "nodes:\n  - {name: n1, cpus: 1, memory: 256M"
      // a login node needs an address, which the other tests must not have: nobody listens there
      << (login_nodes.empty() ? "" : ", address: '127.0.0.1:1'") << "}\n"
      << "partitions:\n  - {name: all, nodes: n1, default: true}\n";
}

NodeUnderTest::~NodeUnderTest() {
  if (pid_ > 0) stop(SIGKILL);
  if (std::getenv("GANTRY_SHOW_LOG") != nullptr) std::fputs(log().c_str(), stderr);
  remove_cgroups();
  std::error_code ignored;
  std::filesystem::remove_all(dir_, ignored);
}

pid_t NodeUnderTest::spawn(const std::vector<std::string>& extra) const {
  std::vector<std::string> args = {program_dir() + "/gantry-noded",
                                   "--config",
                                   dir_ + "/gantry.yaml",
                                   "--name",
                                   "n1",
                                   "--state-dir",
                                   dir_ + "/state",
                                   "--run-dir",
                                   dir_ + "/run",
                                   "--key",
                                   dir_ + "/node.key",
                                   "--log-file",
                                   dir_ + "/log"};
  args.insert(args.end(), extra.begin(), extra.end());
  std::vector<char*> argv;
  for (auto& a : args) argv.push_back(a.data());
  argv.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (!extra.empty()) {
      const int null = ::open("/dev/null", O_WRONLY);
      ::dup2(null, 2);
    }
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  REQUIRE(pid > 0);
  return pid;
}

void NodeUnderTest::start() {
  pid_ = spawn({});
}

void NodeUnderTest::stop(int signal) {
  ::kill(pid_, signal);
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
}

int NodeUnderTest::wait() {
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int NodeUnderTest::run_once(std::vector<std::string> extra) {
  int status = 0;
  ::waitpid(spawn(extra), &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string NodeUnderTest::log() const {
  return read_text(dir_ + "/log");
}

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace gantry::test
