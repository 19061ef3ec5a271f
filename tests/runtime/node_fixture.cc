#include "tests/runtime/node_fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "noded/machine/cgroup.h"
#include "noded/runtime/job_dir.h"
#include "noded/runtime/shim_process.h"
#include "tests/places.h"
#include "tests/skip.h"

#include <doctest/doctest.h>

namespace gantry::runtime::test {
namespace {

constexpr int kPatienceMs = 60'000;  // a virtual machine without acceleration is slow
constexpr int kLastMomentsMs = 20'000;

std::string cgroup_root() {
  return "gantry-test-" + std::to_string(::getpid());
}

// Ends the shim and waits for it. A shim writes its last record even if nobody reads it, so the
// directory must exist until then.
void await_shim(const std::string& dir) {
  ShimProcess shim;
  if (find_shim(dir, shim) != ShimState::alive) return;
  signal_shim(shim, SIGTERM);
  pollfd watched{shim.pidfd.get(), POLLIN, 0};
  ::poll(&watched, 1, kLastMomentsMs);
}

void await_shims(const std::string& state_dir) {
  for (const auto& parent : {jobs_dir(state_dir), gone_dir(state_dir)})
    for (const auto& job : list_dir(parent)) {
      const std::string steps = parent + "/" + job + "/steps";
      for (const auto& step : list_dir(steps)) await_shim(steps + "/" + step);
      await_shim(parent + "/" + job);
    }
}

}  // namespace

bool can_run() {
  if (::geteuid() == 0) return true;
  gantry::test::pass_over("tests with real containers need root");
  return false;
}

Node::Node(const std::function<void(RuntimeOptions&)>& change) {
  std::string pattern = "/var/tmp/gantry-test-XXXXXX";
  REQUIRE(::mkdtemp(pattern.data()) != nullptr);
  dir_ = pattern;
  ::chmod(dir_.c_str(), 0755);
  home_ = dir_ + "/home";
  ::mkdir(home_.c_str(), 0700);
  REQUIRE(::chown(home_.c_str(), kTestUid, kTestUid) == 0);
  options_.node = "n1";
  options_.cluster = "test";
  options_.bin_dir = program_dir();
  options_.self_test = false;
  options_.config.state_dir = state_dir();
  options_.config.cgroup_root = cgroup_root();
  options_.config.image_cache_dir = dir_ + "/images";
  if (const char* wanted = std::getenv("GANTRY_TEST_RUNTIME")) options_.config.runtimes = {wanted};
  if (change) change(options_);
  open();
}

void Node::open() {
  auto opened = Runtime::open(options_);
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  runtime_ = std::move(*opened);
  events_.clear();
}

Node::~Node() {
  runtime_.reset();
  const auto layout = [&] {
    std::vector<std::string> ignored;
    return discover_cgroups(cgroup_root(), options_.node, ignored);
  }();
  for (const auto& name : list_cgroups(layout)) {
    kill_cgroup(layout, name, seconds(10));
    remove_cgroup(layout, name, seconds(10));
  }
  await_shims(state_dir());
  for (const auto& mount : layout.mounts) {
    ::rmdir(mount.path.c_str());
    ::rmdir(mount.path.substr(0, mount.path.rfind('/')).c_str());
  }
  remove_tree(dir_);
}

LaunchRequest Node::job(const std::string& script) {
  LaunchRequest request;
  request.key = {JobId{next_job_++}, Attempt{1}};
  request.owner.uid = Uid{kTestUid};
  request.owner.gid = Gid{kTestUid};
  request.owner.user = "tester";
  request.owner.home = home_;
  request.owner.shell = "/bin/sh";
  request.name = "test";
  request.work_dir = home_;
  request.std_out = "out";
  request.script = "#!/bin/sh\n" + script + "\n";
  request.state("SLURM_JOB_ID", std::to_string(request.key.job.value()));
  request.memory = 64 << 20;
  request.pids_max = 128;
  return request;
}

void Node::pump(int ms) {
  pollfd watched{runtime_->fd(), POLLIN, 0};
  ::poll(&watched, 1, ms);
  for (auto& event : runtime_->poll()) events_.push_back(std::move(event));
}

bool Node::wait_for(const AttemptKey& key, EventKind kind) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
  while (std::chrono::steady_clock::now() < end) {
    for (const auto& event : events_)
      if (event.key == key && event.kind == kind) return true;
    pump(1000);
  }
  return false;
}

ExitRecord Node::wait_end(const AttemptKey& key) {
  REQUIRE(wait_for(key, EventKind::ended));
  for (const auto& event : events_)
    if (event.key == key && event.kind == EventKind::ended) return event.record;
  return {};
}

ExitRecord Node::wait_step(const AttemptKey& key, StepId step) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
  while (std::chrono::steady_clock::now() < end) {
    for (const auto& event : events_)
      if (event.key == key && event.kind == EventKind::step_ended && event.step == step)
        return event.record;
    pump(1000);
  }
  FAIL("the step did not end");
  return {};
}

ExitRecord Node::run(const LaunchRequest& request) {
  const auto begun = runtime_->begin(request);
  REQUIRE_MESSAGE(begun.has_value(), begun.error().message);
  return wait_end(request.key);
}

std::vector<RecoveredAttempt> Node::restart(const std::function<void()>& meanwhile) {
  runtime_.reset();
  if (meanwhile) meanwhile();
  open();
  return runtime_->recover();
}

int Node::shim_pid(const AttemptKey& key) const {
  return std::atoi(read_file(job_dir(state_dir(), key) + "/" + kLockFile).value_or("0").c_str());
}

std::string Node::output() const {
  return read(home_ + "/out");
}

std::string Node::read(const std::string& path) const {
  return read_file(path).value_or("(no file)");
}

void Node::write(const std::string& path, const std::string& text, unsigned mode, bool as_user) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
  REQUIRE(fd);
  REQUIRE(::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  ::fchmod(fd.get(), mode);
  if (as_user) REQUIRE(::fchown(fd.get(), kTestUid, kTestUid) == 0);
}

std::vector<std::string> remains(const Node& node) {
  std::vector<std::string> found;
  std::vector<std::string> ignored;
  for (const auto& name : list_cgroups(discover_cgroups(cgroup_root(), "n1", ignored)))
    found.push_back("cgroup " + name);
  for (const auto& line : split(read_file("/proc/self/mountinfo").value_or(""), '\n'))
    if (line.find(node.dir()) != std::string::npos ||
        line.find("/run/gantry-mnt") != std::string::npos)
      found.push_back("mount " + line);
  for (const auto& name : list_dir("/proc")) {
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto status = read_file("/proc/" + name + "/stat").value_or("");
    // This process has ended and its parent will reap it.
    if (status.find(") Z ") != std::string::npos) continue;
    const auto cgroups = read_file("/proc/" + name + "/cgroup").value_or("");
    if (cgroups.find(cgroup_root() + "/") != std::string::npos)
      found.push_back("process " + name + " " +
                      read_file("/proc/" + name + "/cmdline").value_or(""));
  }
  return found;
}

}  // namespace gantry::runtime::test
