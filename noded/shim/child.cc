#include "noded/shim/child.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "noded/machine/user_child.h"
#include "noded/runtime/job_dir.h"

namespace gantry::runtime {
namespace {

constexpr std::size_t kMaxHelperOutput = 4096;
constexpr std::size_t kMaxMore = 4;

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (const auto& t : texts) out.push_back(const_cast<char*>(t.c_str()));
  out.push_back(nullptr);
  return out;
}

bool place(int fd, int target) {
  if (fd != target) return ::dup2(fd, target) >= 0;
  return ::fcntl(fd, F_SETFD, 0) == 0;
}

// Makes file systems read-only in the child's own mount namespace, without effect on the host. What
// the host mounts later appears there with the host's rights.
bool close_to_writing(const ChildSpec& spec) {
  const char* open = spec.writable.empty() ? nullptr : spec.writable.c_str();
  mount_attr apart{}, read_only{}, writable{};
  apart.propagation = MS_SLAVE;
  read_only.attr_set = MOUNT_ATTR_RDONLY;
  writable.attr_clr = MOUNT_ATTR_RDONLY;
  return ::mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &apart, sizeof apart) == 0 &&
         (open == nullptr || ::mount(open, open, nullptr, MS_BIND, nullptr) == 0) &&
         ::mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &read_only, sizeof read_only) == 0 &&
         (open == nullptr || ::mount_setattr(AT_FDCWD, open, 0, &writable, sizeof writable) == 0);
}

// Runs between vfork and exec and shares the shim's memory, so it makes only system calls. It
// returns only on failure, with the call that failed.
const char* become(const ChildSpec& spec, int null, char** argv, char** env,
                   const sigset_t* signals) {
  if (spec.own_group) ::setpgid(0, 0);
  for (const auto& limit : spec.limits) {
    const rlimit both{limit.soft < limit.most ? limit.soft : limit.most, limit.most};
    if (::setrlimit(static_cast<__rlimit_resource>(limit.what), &both) != 0) return "limits";
  }
  // Moves the sources to high numbers first, because one may have the number that another must get.
  std::array<int, kMaxMore> moved{-1, -1, -1, -1};
  for (std::size_t i = 0; i < spec.more.size() && i < kMaxMore; ++i)
    moved[i] = ::fcntl(spec.more[i], F_DUPFD_CLOEXEC, 64);
  if (spec.cgroup != nullptr)
    for (const auto& entry : *spec.cgroup)
      if (::write(entry.get(), "0", 1) != 1) return "cgroup";
  if (const int fd =
          spec.goes_first ? ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC) : -1;
      fd >= 0) {
    (void)!::write(fd, "1000", 4);
    ::close(fd);
  }
  if (spec.mount_namespace >= 0 && ::setns(spec.mount_namespace, CLONE_NEWNS) != 0)
    return "mount namespace";
  // setns() leads to the namespace's own root, but the shim's root may be a chroot.
  if (spec.mount_namespace >= 0 && (::fchdir(spec.root) != 0 || ::chroot(".") != 0)) return "root";
  if (spec.read_only && !close_to_writing(spec)) return "read-only file systems";
  // All sources are above 2, because the shim opens /dev/null on 0 to 2 before everything else.
  if (!place(spec.in >= 0 ? spec.in : null, 0) || !place(spec.out >= 0 ? spec.out : null, 1) ||
      !place(spec.err >= 0 ? spec.err : null, 2))
    return "standard files";
  for (std::size_t i = 0; i < moved.size(); ++i)
    if (moved[i] >= 0 && !place(moved[i], 3 + static_cast<int>(i))) return "descriptors";
  if (spec.uid != 0 || spec.gid != 0)
    if (const char* failed =
            become_user(spec.uid, spec.gid, spec.groups.data(), spec.groups.size()))
      return failed;
  // If the shim is killed, this child is killed too. A change of ids would reset this setting.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::chdir(spec.cwd.c_str()) != 0) return "working directory";
  ::sigprocmask(SIG_SETMASK, signals, nullptr);
  ::execve(argv[0], argv, env);
  return "exec";
}

struct Failure {
  const char* what = nullptr;  // a string literal
  int error = 0;
};

__attribute__((noinline)) pid_t start(const ChildSpec& spec, int null, char** argv, char** env,
                                      const sigset_t* signals, Failure& failed) {
  const pid_t pid = ::vfork();
  if (pid == 0) {
    failed.what = become(spec, null, argv, env, signals);
    failed.error = errno;
    ::_exit(126);
  }
  return pid;
}

// Uses fork instead of vfork: with vfork the child would return through a stack that it shares.
// Returns -1 if the kernel cannot do it.
pid_t born_into(const ChildSpec& spec, int null, char** argv, char** env, const sigset_t* signals,
                Failure& failed) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return -1;
  const Fd reader(ends[0]);
  Fd writer(ends[1]);
  clone_args how{};
  how.flags = static_cast<std::uint64_t>(spec.namespaces);
  how.exit_signal = SIGCHLD;
  if (spec.cgroup_directory >= 0) {
    how.flags |= CLONE_INTO_CGROUP;
    how.cgroup = static_cast<std::uint64_t>(spec.cgroup_directory);
  }
  const long pid = ::syscall(SYS_clone3, &how, sizeof how);
  if (pid < 0) return -1;
  if (pid == 0) {
    ChildSpec there = spec;
    if (spec.cgroup_directory >= 0) there.cgroup = nullptr;
    Failure mine{become(there, null, argv, env, signals), errno};
    (void)!::write(writer.get(), &mine, sizeof mine);
    ::_exit(126);
  }
  writer.reset();
  Failure said;
  ssize_t n = 0;
  while ((n = ::read(reader.get(), &said, sizeof said)) < 0 && errno == EINTR) {
  }
  if (n == sizeof said) failed = said;
  return static_cast<pid_t>(pid);
}

}  // namespace

Result<int> spawn(const ChildSpec& spec) {
  auto argv = pointers(spec.argv);
  auto env = pointers(spec.env);
  sigset_t none;
  sigemptyset(&none);
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  Failure failed;
  pid_t pid = -1;
  if (spec.cgroup_directory >= 0 || spec.namespaces != 0)
    pid = born_into(spec, null.get(), argv.data(), env.data(), &none, failed);
  if (pid < 0 && spec.namespaces == 0)
    pid = start(spec, null.get(), argv.data(), env.data(), &none, failed);
  if (pid < 0) return fail_errno(ErrorCode::runtime_failed, "fork");
  if (failed.what == nullptr) return static_cast<int>(pid);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return fail(ErrorCode::runtime_failed,
              spec.argv[0] + ": " + errno_text(failed.what, failed.error));
}

Signals::Signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int s : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD, SIGPIPE, SIGURG})
    sigaddset(&set, s);
  ::sigprocmask(SIG_SETMASK, &set, nullptr);
  fd_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

int Signals::next() {
  signalfd_siginfo info{};
  return ::read(fd_.get(), &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo)
                                                              : 0;
}

std::string last_line(const std::string& text) {
  const auto trimmed = trim(text);
  const auto at = trimmed.rfind('\n');
  return at == std::string::npos ? trimmed : trimmed.substr(at + 1);
}

std::string status_text(int wait_status) {
  if (!WIFSIGNALED(wait_status)) return "exit status " + std::to_string(WEXITSTATUS(wait_status));
  const int number = WTERMSIG(wait_status);
  const char* name = ::sigdescr_np(number);
  return "signal " + std::to_string(number) +
         (name != nullptr ? std::string(" (") + name + ")" : "");
}

namespace {

HelperEnd await(int pid, const Fd& output, Signals& signals, Duration timeout,
                const std::function<std::string()>& stopped) {
  HelperEnd w;
  const Instant deadline = timer_clock() + timeout;
  bool open = true;
  for (;;) {
    pollfd watched[2] = {{signals.fd(), POLLIN, 0}, {open ? output.get() : -1, POLLIN, 0}};
    ::poll(watched, 2, 200);
    char buffer[1024];
    if (watched[1].revents != 0) {
      const ssize_t n = ::read(output.get(), buffer, sizeof buffer);
      if (n <= 0) open = false;
      if (n > 0 && w.output.size() < kMaxHelperOutput)
        w.output.append(buffer, static_cast<std::size_t>(n));
    }
    for (int s = signals.next(); s != 0; s = signals.next())
      w.by_order = w.by_order || s == SIGTERM;
    if (w.stopped.empty() && w.by_order) w.stopped = "ended by order";
    if (w.stopped.empty() && deadline < timer_clock()) w.stopped = "over its time";
    if (w.stopped.empty() && stopped) w.stopped = stopped();
    if (!w.stopped.empty()) ::kill(-pid, SIGKILL);
    if (::waitpid(pid, &w.status, WNOHANG) == pid) break;
  }
  while (open) {  // reads the rest of the pipe; a background process may keep the pipe open
    char buffer[1024];
    const ssize_t n = ::read(output.get(), buffer, sizeof buffer);
    if (n <= 0) break;
    if (w.output.size() < kMaxHelperOutput) w.output.append(buffer, static_cast<std::size_t>(n));
  }
  return w;
}

}  // namespace

Result<HelperEnd> run_to_end(ChildSpec spec, Signals& signals, Duration timeout,
                             const std::function<std::string()>& stopped) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
    return fail_errno(ErrorCode::runtime_failed, "pipe");
  const Fd reader(ends[0]);
  Fd writer(ends[1]);
  ::fcntl(writer.get(), F_SETFL, 0);
  if (spec.out < 0) spec.out = writer.get();
  spec.err = writer.get();
  spec.own_group = true;
  const auto pid = spawn(spec);
  writer.reset();
  if (!pid) return tl::unexpected(pid.error());
  return await(*pid, reader, signals, timeout, stopped);
}

Result<std::string> said_of(const std::string& name, HelperEnd end) {
  if (!end.stopped.empty()) return fail(ErrorCode::runtime_failed, name + ": " + end.stopped);
  if (end.status == 0) return std::move(end.output);
  const auto said = last_line(end.output);
  return fail(ErrorCode::runtime_failed,
              name + ": " + status_text(end.status) + (said.empty() ? "" : ": " + said));
}

Result<std::string> run_helper(ChildSpec spec, Signals& signals, Duration timeout,
                               const std::function<std::string()>& stopped) {
  const std::string name = spec.argv[0];
  ASSIGN(end, run_to_end(std::move(spec), signals, timeout, stopped));
  return said_of(name, std::move(*end));
}

}  // namespace gantry::runtime
