#include "noded/runtime/probe.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "common/codec/codec.h"
#include "common/proto/node_report.h"
#include "noded/machine/cgroup.h"
#include "noded/machine/landlock.h"
#include "noded/machine/storage_view.h"
#include "noded/runtime/job_dir.h"
#include "noded/runtime/seccomp.h"
#include "noded/runtime/shim_process.h"

namespace gantry::runtime {
namespace {

constexpr AttemptKey kTestKey{JobId{0}, Attempt{1}};
constexpr std::int64_t kTestMemory = 32 << 20;
constexpr int kTestMs = 20'000;
constexpr std::uint32_t kNobody = 65534;

// Exit codes from 10 on name the missing layer. With a memory limit, being killed for memory is the
// success.
constexpr const char* kTestScript = R"sh(#!/bin/sh
status=/proc/self/status
grep -q '^NoNewPrivs:.1' $status || exit 10
grep -q '^CapEff:.0000000000000000' $status || exit 11
grep -q '^CapBnd:.0000000000000000' $status || exit 11
[ "$(id -u)" = "$GANTRY_TEST_UID" ] || exit 12
[ -z "$GANTRY_TEST_SECCOMP" ] || grep -q '^Seccomp:.2' $status || exit 13
[ ! -d /sys/class/net ] || [ "$(ls /sys/class/net)" = lo ] || exit 14
( : > /usr/gantry-test ) 2>/dev/null && exit 15
[ -d /proc/2000000 ] && exit 16
[ -n "$GANTRY_TEST_MEMORY" ] || exit 0
exec dd if=/dev/zero of=/dev/null bs=128M count=1
)sh";

// For a sandbox with its own kernel. It uses only the shell, because not every such kernel runs
// every program.
constexpr const char* kKernelTest = R"sh(#!/bin/sh
read -r linux version kernel more < /proc/version || exit 18
[ "$kernel" != "$GANTRY_TEST_KERNEL" ] || exit 17
[ "$(id -u)" = "$GANTRY_TEST_UID" ] || exit 12
( : > /usr/gantry-test ) 2>/dev/null && exit 15
exit 0
)sh";

constexpr std::array<std::pair<int, const char*>, 9> kMissing{
    {{10, "no_new_privs is not set"},
     {11, "it has capabilities"},
     {12, "it runs as another user"},
     {13, "no system call filter is active"},
     {14, "it has network interfaces"},
     {15, "its root can be written"},
     {16, "it sees foreign processes"},
     {17, "it has the kernel of the node"},
     {18, "it has no /proc"}}};

bool has_own_kernel(Sandbox level) {
  return level == Sandbox::gvisor || level == Sandbox::vm;
}

LaunchRequest test_request(const NodeSetup& setup, Sandbox level) {
  LaunchRequest request;
  request.sandbox = level;
  request.key = kTestKey;
  request.owner.uid = Uid{setup.rootless ? ::geteuid() : kNobody};
  request.owner.gid = Gid{setup.rootless ? ::getegid() : kNobody};
  request.owner.user = "self-test";
  request.owner.home = "/";
  request.name = "self-test";
  request.work_dir = "/";
  request.std_out = "/dev/null";
  request.env["GANTRY_TEST_UID"] = std::to_string(request.owner.uid.value());
  if (::access((setup.state_dir + "/" + kFilter.bpf).c_str(), R_OK) == 0)
    request.env["GANTRY_TEST_SECCOMP"] = "1";
  utsname host{};
  if (::uname(&host) == 0) request.env["GANTRY_TEST_KERNEL"] = host.release;
  if (setup.cgroups.with("memory") != nullptr && !has_own_kernel(level)) {
    request.env["GANTRY_TEST_MEMORY"] = "1";
    request.memory = kTestMemory;
  }
  return request;
}

Result<void> write_test(const NodeSetup& setup, const std::string& dir,
                        const LaunchRequest& request) {
  remove_tree(dir);
  if (::mkdir(dir.c_str(), 0700) != 0 || ::mkdir((dir + "/run").c_str(), 0755) != 0)
    return fail_errno(ErrorCode::io_error, dir);
  const Fd run(::open((dir + "/run").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (auto r = write_whole(run.get(), "script",
                           has_own_kernel(request.sandbox) ? kKernelTest : kTestScript,
                           Durability::none);
      !r)
    return r;
  if (::fchmodat(run.get(), "script", 0555, 0) != 0) return fail_errno(ErrorCode::io_error, dir);
  const Fd fd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  (void)setup;
  return write_whole(fd.get(), kLaunchFile, codec::encode(request), Durability::none);
}

Result<void> judge(const ExitRecord& record, bool limited) {
  for (const auto& [code, text] : kMissing)
    if (record.cause == ExitCause::exited && record.exit.code == code)
      return fail(ErrorCode::runtime_failed,
                  std::string("a test container is not confined: ") + text);
  if (record.cause == ExitCause::launch_failed || record.cause == ExitCause::refused)
    return fail(ErrorCode::runtime_failed, record.message);
  if (limited && record.cause != ExitCause::out_of_memory)
    return fail(ErrorCode::runtime_failed,
                "the memory limit of a test container had no effect (exit code " +
                    std::to_string(record.exit.code) + ")");
  if (!limited && record.exit != ExitStatus{})
    return fail(ErrorCode::runtime_failed,
                "a test container ended with exit code " + std::to_string(record.exit.code));
  return {};
}

// The shim of a test container may be killed like any other, by an operator or by the kernel when
// memory is short. That does not mean that the runtime fails, so the test is repeated.
constexpr int kMostTests = 3;
constexpr const char* kNoRecord = "the shim of a test container left no exit record";

Result<void> try_once(const NodeSetup& setup, Sandbox level) {
  const std::string dir = job_dir(setup.state_dir, kTestKey);
  const auto request = test_request(setup, level);
  TRY(write_test(setup, dir, request));
  const auto shim =
      start_shim(setup.shim_path, dir, {"job", setup.state_dir, job_name(kTestKey)}, -1);
  if (!shim) return tl::unexpected(shim.error());
  pollfd watched{shim->pidfd.get(), POLLIN, 0};
  const bool in_time = ::poll(&watched, 1, kTestMs) == 1;
  if (!in_time) {
    signal_shim(*shim, SIGKILL);
    ::poll(&watched, 1, 1000);
  }
  reap_shim(*shim);
  const auto bytes = read_file(dir + "/" + kExitFile);
  kill_cgroup(setup.cgroups, job_cgroup(kTestKey), seconds(5));
  remove_cgroup(setup.cgroups, job_cgroup(kTestKey), seconds(5));
  remove_tree(dir);
  if (!in_time) return fail(ErrorCode::timed_out, "a test container did not end within 20 s");
  if (!bytes) return fail(ErrorCode::unavailable, kNoRecord);
  ASSIGN(record, codec::decode<ExitRecord>(*bytes));
  return judge(*record, request.memory > 0);
}

}  // namespace

Result<void> try_container(const NodeSetup& setup, Sandbox level) {
  auto tried = try_once(setup, level);
  for (int i = 1; i < kMostTests && !tried && tried.error().code == ErrorCode::unavailable; ++i)
    tried = try_once(setup, level);
  return tried;
}

std::string runtime_version(const std::string& path) {
  // tidy-allow(banned-call): the path is the operator's own, and only one line is read
  FILE* pipe = ::popen(("'" + path + "' --version 2>/dev/null").c_str(), "re");
  if (pipe == nullptr) return {};
  std::array<char, 256> line{};
  const char* got = std::fgets(line.data(), line.size(), pipe);
  while (std::fgetc(pipe) != EOF) {
  }
  if (::pclose(pipe) != 0 || got == nullptr) return {};
  const auto words = split(trim(line.data()), ' ');  // "crun version 1.8.1"
  return words.back();
}

void describe_layers(const NodeSetup& setup, bool seccomp, ProbeReport& report) {
  auto& on = report.layers_on;
  auto& off = report.layers_off;
  report.cgroup_version = setup.cgroups.version;
  const bool container = setup.runtime != RuntimeKind::process;
  for (const char* layer : {"user namespace", "pid, ipc, uts, mount and cgroup namespaces",
                            "private network", "read-only root", "private /tmp"})
    if (container)
      on.emplace_back(layer);
    else
      off.push_back(std::string(layer) + ": runtime process");
  on.emplace_back("no capabilities, no new privileges");
  if (seccomp)
    on.emplace_back("system call filter");
  else
    off.push_back(std::string("system call filter: no ") + "/usr/share/containers/seccomp.json");
  if (landlock_version() > 0)
    on.push_back("Landlock (version " + std::to_string(landlock_version()) + ")");
  else
    off.emplace_back("Landlock: this kernel has none, or it is switched off");
  for (const auto& [controller, layer] : {std::pair{"memory", "memory limit"},
                                          {"cpuset", "cpu pinning"},
                                          {"pids", "process limit"}}) {
    if (setup.cgroups.with(controller) != nullptr)
      on.push_back(std::string(layer) + " (cgroup v" + std::to_string(setup.cgroups.version) + ")");
    else
      off.push_back(std::string(layer) + ": no " + controller + " cgroup may be written");
  }
  if (can_freeze(setup.cgroups))
    on.emplace_back("suspension of jobs");
  else
    off.push_back(std::string(proto::kNoSuspension) + "no freezer cgroup may be written");
  for (const std::string& directory : setup.storage) {
    const std::string lacks = lacks_project_quota(directory);
    if (lacks.empty())
      on.push_back("storage quota on " + directory);
    else
      off.push_back("storage quota on " + directory + ": " + lacks);
  }
  if (setup.rootless) off.emplace_back("other users' jobs: the node daemon is not root");
  if (setup.cgroups.version == 1) off.emplace_back("write-back I/O accounting: cgroup v1");
}

void describe_sandboxes(const NodeSetup& setup, bool test, ProbeReport& report) {
  const auto add = [&](Sandbox level, std::string why_not) {
    if (why_not.empty() && test)
      if (const auto tried = try_container(setup, level); !tried) why_not = tried.error().message;
    report.sandboxes.push_back({level, std::move(why_not)});
  };
  if (setup.runtime == RuntimeKind::process) {
    for (const Sandbox level : {Sandbox::hardened, Sandbox::gvisor, Sandbox::vm})
      add(level, "its jobs run without a container (runtime process)");
    return;
  }
  const bool filter = ::access((setup.state_dir + "/" + kHardenedFilter.bpf).c_str(), R_OK) == 0;
  add(Sandbox::hardened, filter ? "" : std::string("there is no ") + kSeccompList);
  const std::string rootless = setup.rootless ? "the node daemon is not root" : "";
  add(Sandbox::gvisor, setup.gvisor_path.empty() ? "runsc is not installed" : rootless);
  add(Sandbox::vm, setup.vm_path.empty()
                       ? "its configuration names no runtime for it (noded.vm_runtime)"
                       : rootless);
}

}  // namespace gantry::runtime
