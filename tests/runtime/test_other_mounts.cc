// Tests that root, when it works in a user's directory, stays on that file system: a user can mount
// another one there (FUSE), whose answers the user controls.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>

#include "noded/image/take_in.h"
#include "noded/machine/files.h"
#include "noded/shim/rootfs/host_view.h"
#include "noded/shim/rootfs/scratch.h"
#include "tests/skip.h"

using namespace gantry;
using namespace gantry::runtime;

namespace {

// Runs `work` in a child with its own mount namespace. `work` gets a directory with a file `plain`,
// and with a tmpfs at `sub` that has a file `kept` of 5 MB. Returns the result of `work`.
bool beside_a_mount(const std::function<bool(const std::string& dir)>& work) {
  std::string dir = "/tmp/gantry-mount-XXXXXX";
  REQUIRE(::mkdtemp(dir.data()) != nullptr);
  REQUIRE(::chmod(dir.c_str(), 0755) == 0);
  std::filesystem::create_directory(dir + "/sub");
  std::ofstream(dir + "/plain") << "text";
  const pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", (dir + "/sub").c_str(), "tmpfs", 0, "mode=755") != 0)
      ::_exit(2);
    std::ofstream(dir + "/sub/kept") << std::string(5'000'000, 'x');
    ::_exit(work(dir) ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  std::filesystem::remove_all(dir);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) != 2);
  return WEXITSTATUS(status) == 0;
}

bool can_mount() {
  if (::geteuid() == 0) return true;
  gantry::test::pass_over("mounts need root");
  return false;
}

}  // namespace

TEST_CASE("a tree is removed without what is mounted in it") {
  if (!can_mount()) return;
  CHECK(beside_a_mount([](const std::string& dir) {
    remove_tree(dir);
    return ::access((dir + "/sub/kept").c_str(), F_OK) == 0 &&
           ::access((dir + "/plain").c_str(), F_OK) != 0;
  }));
}

TEST_CASE("file systems mounted in a scratch directory do not count as its use") {
  if (!can_mount()) return;
  CHECK(beside_a_mount([](const std::string& dir) {
    const ScratchUse use = scratch_used(dir);
    return !use.too_deep && use.bytes > 0 && use.bytes < 1'000'000;
  }));
}

TEST_CASE("a file on another file system mounted in an image's directory is not read") {
  if (!can_mount()) return;
  CHECK(beside_a_mount([](const std::string& dir) {
    const Fd layout(::open(dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    Owner owner;
    owner.uid = Uid(20'001);
    owner.gid = Gid(20'001);
    const auto read = [&](const char* name) {
      return take_in_text(owner, {&layout, name, nullptr}, 10'000'000,
                          [] { return std::string(); });
    };
    const auto plain = read("plain");
    return plain && *plain == "text" && !read("sub/kept");
  }));
}

TEST_CASE("kernel interfaces are kept out while the directories that they are on are removed") {
  if (!can_mount()) return;
  std::string dir = "/tmp/gantry-mount-XXXXXX";
  REQUIRE(::mkdtemp(dir.data()) != nullptr);
  constexpr int kPlaces = 400;
  const auto place = [&](int i) { return dir + "/" + std::to_string(i); };
  for (int i = 0; i < kPlaces; ++i) {
    std::filesystem::create_directories(place(i) + "/sys");
    std::ofstream(place(i) + "/net").flush();
  }
  std::array<int, 2> mounted{};
  REQUIRE(::pipe(mounted.data()) == 0);
  const pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    bool made =
        ::unshare(CLONE_NEWNS) == 0 && ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
    for (int i = 0; i < kPlaces && made; ++i)
      made = ::mount("/proc/self/ns/net", (place(i) + "/net").c_str(), "", MS_BIND, nullptr) == 0 &&
             ::mount("proc", (place(i) + "/sys").c_str(), "proc", 0, nullptr) == 0;
    if (!made || ::write(mounted[1], "x", 1) != 1) ::_exit(2);
    ::_exit(drop_pseudo(dir) ? 0 : 1);
  }
  char go = 0;
  REQUIRE(::read(mounted[0], &go, 1) == 1);
  // Nothing is mounted here, so they can be removed; the kernel takes the child's mounts with them.
  std::filesystem::remove_all(dir);
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  ::close(mounted[0]);
  ::close(mounted[1]);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
