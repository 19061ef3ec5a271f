// Tests devices that only some jobs may open. Opening a device file whose number no driver has
// gives ENXIO if the device rules allow it, and EPERM if they deny it; so no GPU is needed.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "common/codec/codec.h"
#include "noded/machine/cgroup.h"
#include "noded/runtime/job_dir.h"
#include "tests/runtime/node_fixture.h"

using namespace gantry;
using namespace gantry::runtime;
using namespace gantry::runtime::test;

namespace {

// No driver of this machine has these majors, which are in the range for local use.
constexpr std::uint32_t kMajor = 242, kOtherMajor = 243;

std::string make_node(const std::string& dir, std::uint32_t major, std::uint32_t minor) {
  const std::string path = fmt::format("{}/{}-{}", dir, major, minor);
  REQUIRE(::mknod(path.c_str(), S_IFCHR | 0666, makedev(major, minor)) == 0);
  REQUIRE(::chmod(path.c_str(), 0666) == 0);
  return path;
}

// Returns errno of open() for a process in the job's cgroup.
int opened_inside(const Node& node, const AttemptKey& key, const std::string& path, int flags) {
  const auto setup = codec::decode<NodeSetup>(node.read(node.state_dir() + "/" + kSetupFile));
  REQUIRE(setup);
  const pid_t child = ::fork();
  if (child == 0) {
    for (const Fd& entry : open_cgroup_entries(setup->cgroups, job_cgroup(key)))
      if (::write(entry.get(), "0", 1) != 1) ::_exit(250);
    const int fd = ::open(path.c_str(), flags);
    ::_exit(fd >= 0 ? 0 : errno);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("a job opens the devices that it was given and no others of their kind") {
  if (!can_run()) return;
  Node node([](RuntimeOptions& options) { options.device_majors = {kMajor}; });
  const std::string files = node.dir() + "/files";
  REQUIRE(::mkdir(files.c_str(), 0755) == 0);
  const auto own = make_node(files, kMajor, 3), read_only = make_node(files, kMajor, 4),
             other = make_node(files, kMajor, 5), foreign = make_node(files, kOtherMajor, 3);

  auto with = node.job(
      "ls /dev | grep gpu; for f in /dev/gpu0 /dev/gpucap; do "
      "( exec 3<>$f ) 2>&1 | grep -o 'No such device or address\\|Operation not permitted\\|"
      "Permission denied'; done; echo ready; exec sleep 60");
  with.devices = {{"/dev/gpu0", own, kMajor, 3, "rw"}, {"/dev/gpucap", read_only, kMajor, 4, "r"}};
  auto without = node.job("exec sleep 60");
  without.std_out = node.home() + "/out2";
  for (const auto& request : {with, without}) {
    REQUIRE(node.runtime().begin(request));
    REQUIRE(node.wait_for(request.key, EventKind::running));
  }
  for (int i = 0; i < 200 && node.output().find("ready") == std::string::npos; ++i) node.pump(50);
  CHECK(node.output() ==
        "gpu0\ngpucap\nNo such device or address\nOperation not permitted\nready\n");

  CHECK(opened_inside(node, with.key, own, O_RDWR) == ENXIO);
  CHECK(opened_inside(node, with.key, read_only, O_RDONLY) == ENXIO);
  CHECK(opened_inside(node, with.key, read_only, O_RDWR) == EPERM);
  CHECK(opened_inside(node, with.key, other, O_RDONLY) == EPERM);
  CHECK(opened_inside(node, with.key, foreign, O_RDONLY) == EPERM);
  CHECK(opened_inside(node, with.key, "/dev/null", O_RDWR) == 0);
  for (const auto& path : {own, read_only, other, foreign})
    CHECK(opened_inside(node, without.key, path, O_RDONLY) == EPERM);
  CHECK(opened_inside(node, without.key, "/dev/null", O_RDWR) == 0);

  for (const auto& key : {with.key, without.key}) {
    REQUIRE(node.runtime().kill(key));
    node.wait_end(key);
    node.runtime().forget(key);
  }
  for (const auto& left : remains(node)) FAIL_CHECK(left);
}
