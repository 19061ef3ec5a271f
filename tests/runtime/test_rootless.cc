// Tests a node daemon that does not run as root: its containers are in user namespaces of its own
// user, without resource limits.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "noded/runtime/runtime.h"
#include "tests/places.h"
#include "tests/runtime/node_fixture.h"
#include "tests/skip.h"

using namespace gantry;
using namespace gantry::runtime;
using namespace gantry::runtime::test;

namespace {

// Runs in a child that has become the test's user. Returns 0 if all is well, and otherwise the
// number of the step that failed.
int as_user(const std::string& home) {
  if (::setgroups(0, nullptr) != 0 || ::setresgid(kTestUid, kTestUid, kTestUid) != 0 ||
      ::setresuid(kTestUid, kTestUid, kTestUid) != 0)
    return 2;
  RuntimeOptions options;
  options.node = "n1";
  options.cluster = "test";
  options.bin_dir = home + "/bin";
  options.config.state_dir = home + "/state";
  options.config.cgroup_root = "gantry-test-rootless";
  auto opened = Runtime::open(options);
  if (!opened) return std::fprintf(stderr, "%s\n", opened.error().message.c_str()), 3;
  auto& runtime = **opened;
  LaunchRequest request;
  request.key = {JobId{1}, Attempt{1}};
  request.owner = {Uid{kTestUid}, Gid{kTestUid}, "tester", {}, home, "/bin/sh"};
  request.work_dir = home;
  request.std_out = "out";
  request.memory = 64 << 20;
  request.cpus = {1};
  request.script =
      "#!/bin/sh\nid -u; grep -E 'CapEff|NoNewPrivs|Seccomp:' /proc/self/status; ls "
      "/sys/class/net; "
      "touch /usr/x 2>&1; touch mine; ls /tmp | wc -l; echo nproc=$(nproc); exit 9\n";
  if (!runtime.begin(request)) return 4;
  for (int i = 0; i < 300; ++i) {
    pollfd watched{runtime.fd(), POLLIN, 0};
    ::poll(&watched, 1, 100);
    for (const auto& event : runtime.poll()) {
      if (event.kind != EventKind::ended) continue;
      if (!event.record.message.empty()) std::fprintf(stderr, "%s\n", event.record.message.c_str());
      const auto& off = runtime.probe().layers_off;
      bool said = false;
      for (const auto& line : off) said = said || has(line, "memory limit: no memory cgroup");
      return event.record.exit == ExitStatus{9, 0} ? (said ? 0 : 6) : 5;
    }
  }
  return 7;
}

// In a chroot "/" is not a mount, and the kernel refuses user namespaces to everybody.
bool in_chroot() {
  struct statx at {};
  return ::statx(AT_FDCWD, "/", 0, STATX_BASIC_STATS, &at) == 0 &&
         (at.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0 &&
         (at.stx_attributes & STATX_ATTR_MOUNT_ROOT) == 0;
}

}  // namespace

TEST_CASE("a node of an ordinary user runs containers, and says which protections are off") {
  if (!can_run()) return;
  if (in_chroot()) SKIP_CASE("there are no user namespaces in a chroot");
  Node node;  // only its directories are used
  // The programs are copied, because this user may not be allowed to enter the build directory.
  std::filesystem::create_directory(node.home() + "/bin");
  for (const std::string name : {"/gantry-shim", "/gantry-init"})
    std::filesystem::copy_file(program_dir() + name, node.home() + "/bin" + name);
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(as_user(node.home()));
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  CHECK(WEXITSTATUS(status) == 0);
  const auto out = node.output();
  CHECK_MESSAGE(out.starts_with("20001\n"), out);
  CHECK(has(out, "CapEff:\t0000000000000000"));
  CHECK(has(out, "NoNewPrivs:\t1"));
  CHECK(has(out, "Seccomp:\t2"));
  CHECK(has(out, "lo\n"));
  CHECK(has(out, "Read-only file system"));
  CHECK(has(out, "\n0\nnproc=1\n"));
  CHECK(::access((node.home() + "/mine").c_str(), F_OK) == 0);
}
