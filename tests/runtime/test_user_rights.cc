// Tests what root does with paths that a user chose: files, notices, mounts, images and scratch
// directories.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <mqueue.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

#include "common/codec/codec.h"
#include "noded/runtime/job_dir.h"
#include "tests/eventually.h"
#include "tests/runtime/node_fixture.h"

using namespace gantry;
using namespace gantry::runtime;
using namespace gantry::runtime::test;

namespace {

constexpr const char* kCorePattern = "/proc/sys/kernel/core_pattern";

// This file of root exists once for the whole machine; the tests must not change it.
std::string core_pattern() {
  return read_file(kCorePattern).value_or("");
}

void link(const std::string& target, const std::string& name) {
  REQUIRE(::symlink(target.c_str(), name.c_str()) == 0);
}

}  // namespace

TEST_CASE("a file of the kernel cannot be a job's output, by whatever name and mode") {
  if (!can_run()) return;
  Node node;
  const std::string before = core_pattern();
  link(kCorePattern, node.home() + "/by-link");
  link("by-link", node.home() + "/by-two-links");
  link("/proc/sys/kernel", node.home() + "/by-directory");
  link("/proc/self/fd/1", node.home() + "/by-descriptor");
  for (const std::string out :
       {kCorePattern, "/proc/sys/kernel/../kernel/core_pattern", "by-link", "by-two-links",
        "by-directory/core_pattern", "by-directory/not-there-yet", "by-descriptor", "/dev/stderr",
        "/dev/fd/2", "/dev/kmsg", "/dev/zero", "/sys/kernel/mm/transparent_hugepage/enabled",
        "/proc/self/oom_score_adj", "/proc/self/comm", "/proc/thread-self/attr/exec"})
    for (const auto mode : {OpenMode::append, OpenMode::truncate})
      for (const bool error : {false, true}) {
        auto request = node.job("echo gantry-test; echo gantry-test >&2");
        (error ? request.std_err : request.std_out) = out;
        request.open_mode = mode;
        const auto record = node.run(request);
        CHECK_MESSAGE(record.cause == ExitCause::refused, out);
        CHECK_MESSAGE(has(record.message, "node n1: output file "), record.message);
        CHECK_FALSE(record.started.has_value());
      }
  // The path is made from the job's name, a part that the user chooses too.
  auto request = node.job("true");
  request.name = "..";
  request.std_out = "%x/%x/%x/%x/%x/%x/proc/sys/kernel/core_pattern";
  CHECK(node.run(request).cause == ExitCause::refused);
  CHECK(core_pattern() == before);
}

TEST_CASE("a file of the kernel cannot be a job's input, and the reason says so") {
  if (!can_run()) return;
  Node node;
  link("/proc/kallsyms", node.home() + "/symbols");
  const auto reason = [&](const std::string& in) {
    auto request = node.job("cat");
    request.std_in = in;
    const auto record = node.run(request);
    CHECK_MESSAGE(record.cause == ExitCause::refused, in);
    return record.message;
  };
  const std::string allowed = "; a regular file, a named pipe or /dev/null is allowed";
  CHECK(reason("/proc/kallsyms") ==
        "node n1: input file /proc/kallsyms: belongs to the node's kernel (proc)" + allowed);
  CHECK(reason("/dev/kmsg") == "node n1: input file /dev/kmsg: is a device" + allowed);
  CHECK(has(reason("symbols"), "belongs to the node's kernel (proc)"));
  CHECK(has(reason("/sys/kernel/notes"), "belongs to the node's kernel (sysfs)"));
  CHECK(has(reason("/proc/self/maps"), "belongs to the node's kernel (proc)"));
  for (const std::string in : {"/proc/self/environ", "/proc/self/mem", "/proc/1/environ",
                               "/dev/zero", "/dev/urandom", "/dev/mem", "/proc/self/fd/0"})
    reason(in);
  const Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  std::strncpy(at.sun_path, (node.home() + "/sock").c_str(), sizeof at.sun_path - 1);
  REQUIRE(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
  REQUIRE(::chmod(at.sun_path, 0777) == 0);
  CHECK(has(reason("sock"), "is a socket" + allowed));
}

TEST_CASE("links to files, named pipes and /dev/null can be outputs") {
  if (!can_run()) return;
  Node node;
  link("real", node.home() + "/link");  // the link's target does not exist yet
  auto request = node.job("echo text");
  request.std_out = "link";
  node.run(request);
  CHECK(node.read(node.home() + "/real") == "text\n");
  struct stat st {};
  REQUIRE(::lstat((node.home() + "/real").c_str(), &st) == 0);
  CHECK(st.st_uid == kTestUid);

  const std::string pipe = node.home() + "/pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0666) == 0);
  REQUIRE(::chmod(pipe.c_str(), 0666) == 0);
  request = node.job("echo text");
  request.std_out = "pipe";
  CHECK(has(node.run(request).message, "No such device or address"));  // nobody reads the pipe yet
  const Fd reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  request = node.job("echo text");
  request.std_out = "pipe";
  CHECK(node.run(request).exit == ExitStatus{0, 0});
  char text[8] = {};
  CHECK(::read(reader.get(), text, sizeof text) == 5);

  request = node.job("cat; echo text");
  request.std_in = request.std_out = request.std_err = "/dev/null";
  CHECK(node.run(request).exit == ExitStatus{0, 0});

  // In a directory where everybody may make files, another user's file does not get the output.
  const std::string shared = node.dir() + "/shared";
  REQUIRE(::mkdir(shared.c_str(), 0777) == 0);
  REQUIRE(::chmod(shared.c_str(), 01777) == 0);
  node.write(shared + "/out", "", 0666, false);
  REQUIRE(::chown((shared + "/out").c_str(), kTestUid + 1, kTestUid + 1) == 0);
  request = node.job("true");
  request.std_out = shared + "/out";
  CHECK(has(node.run(request).message, "belongs to another user"));
}

// fs.protected_symlinks and fs.protected_hardlinks may be off, as they are by the kernel's default.
TEST_CASE("another user's links in a shared directory do not redirect a job's output") {
  if (!can_run()) return;
  Node node;
  const std::string shared = node.dir() + "/shared";
  REQUIRE(::mkdir(shared.c_str(), 0777) == 0);
  REQUIRE(::chmod(shared.c_str(), 01777) == 0);
  const std::string mine = node.home() + "/mine", missing = node.home() + "/missing";
  node.write(mine, "kept\n", 0600, true);
  const auto out = [&](const std::string& path, std::uint32_t owner) {
    REQUIRE(::lchown(path.c_str(), owner, owner) == 0);
    auto request = node.job("echo astray");
    request.std_out = path;
    request.open_mode = OpenMode::truncate;
    const auto record = node.run(request);
    return record.cause == ExitCause::refused ? record.message : "taken";
  };
  link(mine, shared + "/to-what-is-there");
  link(missing, shared + "/to-what-is-not");
  link("to-what-is-there", shared + "/own");
  CHECK(has(out(shared + "/to-what-is-there", kTestUid + 1), "is another user's link"));
  CHECK(has(out(shared + "/to-what-is-not", kTestUid + 1), "is another user's link"));
  CHECK(has(out(shared + "/own", kTestUid), "is another user's link"));
  link(shared + "/to-what-is-there", node.home() + "/by-two");
  CHECK(has(out(node.home() + "/by-two", kTestUid), "is another user's link"));
  REQUIRE(::link(mine.c_str(), (shared + "/name").c_str()) == 0);
  CHECK(has(out(shared + "/name", kTestUid), "has another name as well"));
  CHECK(node.read(mine) == "kept\n");
  CHECK(::access(missing.c_str(), F_OK) != 0);
  // A link of the user's own, and root's link in root's directory, are followed.
  REQUIRE(::unlink((shared + "/name").c_str()) == 0);
  CHECK(out(shared + "/to-what-is-not", kTestUid) == "taken");
  CHECK(node.read(missing) == "astray\n");
  CHECK(out(shared + "/to-what-is-there", 0) == "taken");
  CHECK(node.read(mine) == "astray\n");
}

TEST_CASE("a notice for a pipe that nobody reads does not delay the job's end") {
  if (!can_run()) return;
  Node node;
  const std::string pipe = node.home() + "/pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0666) == 0);
  REQUIRE(::chmod(pipe.c_str(), 0666) == 0);
  const Fd reader(::open(pipe.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  const std::string much(1 << 20, 'x');
  while (::write(reader.get(), much.data(), much.size()) > 0) {
  }
  auto request = node.job("sleep 0.5");
  request.std_err = "pipe";
  REQUIRE(node.runtime().begin(request));
  REQUIRE(node.wait_for(request.key, EventKind::running));
  REQUIRE(node.runtime().notice(request.key, "*** you are told ***"));
  CHECK(node.wait_end(request.key).exit == ExitStatus{0, 0});
}

TEST_CASE("no mount shows a file system of the kernel, whatever characters its names have") {
  if (!can_run()) return;
  Node node;
  node.write(node.home() + "/file", "mine\n", 0644, true);
  REQUIRE(::mkdir((node.home() + "/a b").c_str(), 0777) == 0);
  node.write(node.home() + "/a b/file", "blank\n", 0644, true);
  link("/proc", node.home() + "/p");
  link("/proc/kallsyms", node.home() + "/symbols");
  const auto run = [&](const std::string& mount, const std::string& script) {
    auto request = node.job(script);
    request.container.mounts = {mount};
    return node.run(request);
  };
  for (const std::string& source : {node.home() + "/p", node.home() + "/symbols"})
    for (const std::string target : {"/tmp/x", "/tmp/x y", "/tmp/x\\040y"}) {
      const auto record = run(source + ":" + target, "ls /tmp/*");
      CHECK_MESSAGE(record.cause == ExitCause::refused, source << " at " << target);
      CHECK_MESSAGE(has(record.message, "leads to what belongs to the node's kernel"),
                    record.message);
    }
  // This mounts the whole host, with everything that is mounted in it.
  for (const std::string target :
       {"/tmp/host", "/tmp/the host's", "/tmp/the\\040host", "/tmp/a, b"}) {
    run("/:" + target, "cd /tmp/*/ && ls proc sys dev/pts | grep -v : | grep -c . ; ls etc/passwd");
    CHECK_MESSAGE(node.output() == "0\netc/passwd\n", target);
  }
  // Other names with such characters are allowed.
  for (const std::string target : {"/tmp/x y", "/tmp/x\\040y", "/tmp/x,y"}) {
    run(node.home() + "/a b:" + target, "cat '" + target + "/file'");
    CHECK_MESSAGE(node.output() == "blank\n", target);
  }
  for (const std::string target : {"/tmp/x\ny", "/tmp/x\ty", "/tmp/x\x7fy"})
    CHECK(has(run(node.home() + ":" + target, "true").message,
              "control characters, such as a tab, are not allowed"));
  for (const auto& left : remains(node)) FAIL_CHECK(left);
}

TEST_CASE("a working directory or an image cannot lead to a file system of the kernel") {
  if (!can_run()) return;
  Node node;
  const std::string own = node.dir() + "/own";
  REQUIRE(::mkdir(own.c_str(), 0755) == 0);
  REQUIRE(::chown(own.c_str(), kTestUid, kTestUid) == 0);
  link("/proc", own + "/a link");
  link("/sys", own + "/root");
  auto request = node.job("ls");
  request.work_dir = own + "/a link";
  request.std_out = node.home() + "/out";
  CHECK(node.run(request).cause == ExitCause::refused);
  for (const std::string& image : {std::string("/proc"), std::string("/sys"), own + "/root"}) {
    request = node.job("true");
    request.container.image = image;
    const auto record = node.run(request);
    CHECK(record.cause == ExitCause::refused);
    CHECK_MESSAGE(has(record.message, "belongs to the node's kernel"), record.message);
  }
}

TEST_CASE("the runtime does not enter a directory that a user names") {
  if (!can_run()) return;
  Node node;
  auto request = node.job("pwd; sleep 600");
  REQUIRE(node.runtime().begin(request));
  REQUIRE(node.wait_for(request.key, EventKind::running));
  const auto record = codec::decode<RunningRecord>(
      node.read(job_dir(node.state_dir(), request.key) + "/" + kRunningFile));
  REQUIRE(record.has_value());
  char cwd[256] = {};
  const std::string link = "/proc/" + std::to_string(record->init_pid) + "/cwd";
  CHECK(::readlink(link.c_str(), cwd, sizeof cwd - 1) > 0);
  CHECK(std::string(cwd) == "/");
  eventually([&] { return !node.output().empty(); });
  CHECK(node.output() == node.home() + "\n");
  REQUIRE(node.runtime().kill(request.key));
  node.wait_end(request.key);
}

TEST_CASE("a directory that waits at a job's scratch path is not used") {
  if (!can_run()) return;
  std::string scratch;
  Node node([&](RuntimeOptions& options) {
    scratch = options.config.state_dir.substr(0, options.config.state_dir.rfind('/')) + "/scratch";
    options.scratch_dir = scratch;
  });
  REQUIRE(::access(scratch.c_str(), F_OK) == 0);  // the node has made it
  REQUIRE(::chmod(scratch.c_str(), 01777) == 0);
  auto request = node.job("ls /tmp | grep -c .; touch /tmp/new");
  request.scratch = 1 << 20;
  link("/etc", scratch + "/gantry-n1-" + job_name(request.key));
  node.run(request);
  CHECK(node.output() == "0\n");
}

TEST_CASE("a mount point in a scratch directory belongs to the user, also on a tmpfs") {
  if (!can_run()) return;
  Node node([](RuntimeOptions& options) { options.scratch_dir = "/dev/shm"; });
  auto request = node.job("stat -c %u /tmp/a /tmp/a/b");
  request.scratch = 1 << 20;
  request.container.mounts = {node.home() + ":/tmp/a/b"};
  CHECK(node.run(request).exit == ExitStatus{0, 0});
  CHECK(node.output() == "20001\n20001\n");
}

// Takes as much as it can get of the resources that the kernel counts for each user, until the file
// `until` exists.
constexpr const char* kTakeAll = R"(cat > take.py <<'END'
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
most, until = int(sys.argv[1]), sys.argv[2]
def take(one):
    n = 0
    while n < most and one(n) >= 0:
        n += 1
    return n
timer = ctypes.c_void_p()
watches = take(lambda n: libc.inotify_init1(0))
timers = take(lambda n: libc.timer_create(1, None, ctypes.byref(timer)))
queues = take(lambda n: libc.mq_open(b"/q%d" % n, os.O_CREAT | os.O_RDWR, 0o600, None))
print(watches, timers, queues, flush=True)
while until and not os.path.exists(until):
    time.sleep(0.02)
END
)";

TEST_CASE("a job that uses up its limits in the kernel leaves other jobs and root theirs") {
  if (!can_run()) return;
  Node node;
  auto greedy = node.job(std::string(kTakeAll) + "python3 take.py 1000000 done\n");
  greedy.std_out = "greedy";
  REQUIRE(node.runtime().begin(greedy));
  const auto until = ::time(nullptr) + 30;
  while (!has(node.read(node.home() + "/greedy"), "\n") && ::time(nullptr) < until) node.pump(20);
  const auto took = node.read(node.home() + "/greedy");
  MESSAGE("it took ", took);
  CHECK(has(took, "\n"));

  const int watch = ::inotify_init1(0);
  CHECK(watch >= 0);
  ::close(watch);
  timer_t timer{};
  const bool timed = ::timer_create(CLOCK_MONOTONIC, nullptr, &timer) == 0;
  CHECK(timed);
  if (timed) ::timer_delete(timer);
  const mqd_t queue = ::mq_open("/gantry-test", O_CREAT | O_RDWR, 0600, nullptr);
  CHECK(queue >= 0);
  ::mq_close(queue);
  ::mq_unlink("/gantry-test");

  auto modest = node.job(std::string(kTakeAll) + "python3 take.py 2 ''\n");
  modest.std_out = "modest";
  node.run(modest);
  CHECK(node.read(node.home() + "/modest") == "2 2 2\n");
  node.write(node.home() + "/done", "", 0644, true);
  CHECK(node.wait_end(greedy.key).exit == ExitStatus{0, 0});
}
