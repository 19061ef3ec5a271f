// Tests that a signal for a job's processes reaches no other process, although the kernel reuses
// process numbers at any moment: after the cgroup's list was read, after a process was opened,
// before the signal is sent. FIFOs in place of the list let the test decide what happens in
// between.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <thread>

#include "noded/machine/cgroup.h"
#include "tests/skip.h"

using namespace gantry;
using namespace gantry::runtime;

namespace {

// Starts a process that waits to be ended, with this number if one is given. Returns 0 if the
// number may not be chosen.
pid_t sleeper(pid_t number = 0) {
  clone_args args{};
  args.exit_signal = SIGCHLD;
  if (number != 0) {
    args.set_tid = reinterpret_cast<std::uintptr_t>(&number);
    args.set_tid_size = 1;
  }
  const long pid = ::syscall(SYS_clone3, &args, sizeof args);
  if (pid == 0) {
    // the reader of the list would not see its end while this process holds the FIFO
    ::close_range(0, ~0U, 0);
    for (int number_of_signal : {SIGTERM, SIGINT}) ::signal(number_of_signal, SIG_DFL);
    for (;;) ::pause();
  }
  return pid < 0 ? 0 : static_cast<pid_t>(pid);
}

void end(pid_t pid) {
  if (pid <= 0) return;
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

// Returns true if the process ends. A signal has arrived when kill() returns, so a process that
// lives longer than this time got none.
bool ends(pid_t pid) {
  const Fd held(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  pollfd over{held.get(), POLLIN, 0};
  return ::poll(&over, 1, 500) == 1;
}

// A cgroup's list of processes that shows another text at each look. The second argument of look()
// runs after the list was read and before the reader goes on.
class List {
 public:
  List() {
    REQUIRE(::mkdtemp(dir_.data()) != nullptr);
    REQUIRE(std::filesystem::create_directory(dir_ + "/job_1.1"));
    layout.version = 2;
    layout.mounts.push_back({dir_, {}});
    make();
  }
  ~List() { std::filesystem::remove_all(dir_); }
  void look(const std::string& text, const std::function<void()>& then = {}) {
    // open() returns when the list is being read
    const int fd = ::open(path().c_str(), O_WRONLY | O_CLOEXEC);
    if (!text.empty()) REQUIRE(::write(fd, text.data(), text.size()) > 0);
    REQUIRE(::unlink(path().c_str()) == 0);
    make();  // the FIFO for the next look
    if (then) then();
    ::close(fd);
  }
  CgroupLayout layout;

 private:
  [[nodiscard]] std::string path() const { return dir_ + "/job_1.1/cgroup.procs"; }
  void make() const { REQUIRE(::mkfifo(path().c_str(), 0600) == 0); }
  std::string dir_ = "/tmp/gantry-list-XXXXXX";
};

}  // namespace

TEST_CASE("a process that has left the list when it is opened gets no signal") {
  List list;
  const pid_t stranger = sleeper(), meant = sleeper();
  REQUIRE(stranger > 0);
  REQUIRE(meant > 0);
  std::thread kernel([&] {
    list.look(std::to_string(stranger) + "\n" + std::to_string(meant) + "\n");
    list.look(std::to_string(meant) + "\n");
  });
  signal_cgroup(list.layout, "job_1.1", SIGKILL);
  kernel.join();
  CHECK(ends(meant));
  CHECK_FALSE(ends(stranger));
  end(stranger);
  end(meant);
}

TEST_CASE("a process that reuses the number of an opened process gets no signal") {
  const pid_t probe = sleeper();
  end(probe);
  const pid_t again = sleeper(probe);
  end(again);
  if (again != probe) SKIP_CASE("numbers of processes may not be chosen here");
  List list;
  const pid_t meant = sleeper();
  REQUIRE(meant > 0);
  pid_t stranger = 0;
  std::thread kernel([&] {
    list.look(std::to_string(meant) + "\n");
    list.look(std::to_string(meant) + "\n", [&] {
      end(meant);
      stranger = sleeper(meant);
    });
  });
  signal_cgroup(list.layout, "job_1.1", SIGKILL);
  kernel.join();
  REQUIRE(stranger == meant);
  CHECK_FALSE(ends(stranger));
  end(stranger);
}
