#include "noded/shim/task.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/mempolicy.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "noded/machine/landlock.h"
#include "noded/machine/user_child.h"

namespace gantry::runtime {
namespace {

constexpr int kReportFd = 3;   // the report pipe's number in the tasks, until exec
constexpr int kProgramFd = 5;  // the number of the program's descriptor, until exec
static_assert(kMoreFd == kProgramFd + 1);
constexpr int kMaxCapability = 63;
constexpr std::size_t kMostNumaNodes = 1024;  // the kernel's largest number of NUMA nodes

// The report of a child before it executes its program; small enough to be written in one piece.
struct Report {
  enum Kind : std::int32_t { started, task_failed, place_failed } kind;
  std::int32_t index;  // of the task
  std::int32_t value;  // if started: pid; else errno
  char what[40];       // the call that failed
};

void report(int fd, Report::Kind kind, int index, int value, const char* what) {
  Report r{kind, index, value, {}};
  std::strncpy(r.what, what, sizeof r.what - 1);
  (void)!::write(fd, &r, sizeof r);
}

bool drop_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> none{};
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  return ::syscall(SYS_capset, &header, none.data()) == 0;
}

void limit(__rlimit_resource_t resource, rlim_t soft, rlim_t hard) {
  rlimit own{};
  if (::getrlimit(resource, &own) != 0) return;
  hard = std::min(hard, own.rlim_max);
  const rlimit wanted{std::min(soft, hard), hard};
  ::setrlimit(resource, &wanted);
}

// The requested soft limits, as far as the hard limits allow. It allocates nothing.
void lower_limits(const ProcessLimits& asked) {
  for (const SoftLimit& wanted : asked.soft) {
    const auto resource = static_cast<__rlimit_resource_t>(resource_of(wanted.name));
    rlimit own{};
    if (::getrlimit(resource, &own) != 0) continue;
    own.rlim_cur = std::min<rlim_t>(wanted.value.value_or(RLIM_INFINITY), own.rlim_max);
    ::setrlimit(resource, &own);
  }
}

bool set_ids(const TaskPlace& place) {
  if (!place.rootless) {
    std::vector<gid_t> groups;
    for (const auto g : place.owner->groups) groups.push_back(g.value());
    if (::setgroups(groups.size(), groups.data()) != 0) return false;
  }
  const auto gid = place.owner->gid.value();
  const auto uid = place.owner->uid.value();
  return ::setresgid(gid, gid, gid) == 0 && ::setresuid(uid, uid, uid) == 0;
}

bool filter_calls(const std::string& bpf) {
  if (bpf.empty()) return true;
  sock_fprog program{};
  program.len = static_cast<unsigned short>(bpf.size() / sizeof(sock_filter));
  program.filter = reinterpret_cast<sock_filter*>(const_cast<char*>(bpf.data()));
  return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// A kernel without NUMA has no such call, and needs none.
void bind_memory(const std::vector<std::uint16_t>& nodes, bool preferred) {
  if (nodes.empty()) return;
  constexpr std::size_t kBits = 8 * sizeof(unsigned long);
  std::array<unsigned long, kMostNumaNodes / kBits> mask{};
  for (const auto node : nodes)
    if (node < kMostNumaNodes) mask[node / kBits] |= 1ul << node % kBits;
  ::syscall(SYS_set_mempolicy, preferred ? MPOL_PREFERRED : MPOL_BIND, mask.data(),
            kMostNumaNodes + 1);
}

void say_place(const std::string& note) {
  constexpr std::string_view kPid = "{pid}";
  std::string text = note;
  for (std::size_t at = text.find(kPid); at != std::string::npos; at = text.find(kPid))
    text.replace(at, kPid.size(), std::to_string(::getpid()));
  (void)!::write(STDERR_FILENO, text.data(), text.size());
}

void place_descriptors(const TaskSpec& task, int pipe) {
  std::vector<int> places{task.in, task.out, task.err, pipe, task.extra, task.program};
  places.insert(places.end(), task.more.begin(), task.more.end());
  const int count = static_cast<int>(places.size());
  for (int& fd : places)  // copies all descriptors to numbers above their final ones
    fd = fd < 0 ? -1 : ::fcntl(fd, F_DUPFD, std::max(64, count));
  for (int i = 0; i < count; ++i) {
    const int from = places[static_cast<std::size_t>(i)];
    if (from >= 0)
      ::dup2(from, i);
    else
      ::close(i);
  }
  ::fcntl(kReportFd, F_SETFD, FD_CLOEXEC);
  ::fcntl(kProgramFd, F_SETFD, FD_CLOEXEC);
  ::close_range(static_cast<unsigned>(count), ~0u, 0);
}

// The owner opens the terminal inside the container, so it belongs to the container and the owner,
// and has a name there.
bool take_terminal(const proto::TerminalSize& size) {
  Fd master(::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC));
  const int unlocked = 0;
  if (!master || ::ioctl(master.get(), TIOCSPTLCK, &unlocked) != 0) return false;
  const winsize window{size.rows, size.columns, 0, 0};
  ::ioctl(master.get(), TIOCSWINSZ, &window);
  const Fd slave(::ioctl(master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!slave || ::ioctl(slave.get(), TIOCSCTTY, 0) != 0) return false;
  const Fd to_shim(kExtraFd);
  if (!pass(to_shim, "t", master.get())) return false;
  for (int i = 0; i <= 2; ++i) ::dup2(slave.get(), i);
  return true;
}

// Runs as the task itself. All descriptors of the shim are closed before it gets the owner's ids,
// so that no process of the job can take one from it.
[[noreturn]] void become(const TaskSpec& task, const TaskPlace& place, int index, char** argv,
                         char** env, int pipe) {
  const auto give_up = [&](const char* what, int code) {
    report(kReportFd, Report::task_failed, index, errno, what);
    ::_exit(code);
  };
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);  // until exec, no process of the job may trace this one
  ::setsid();
  place_descriptors(task, pipe);
  pin(task.cpus);
  bind_memory(task.mems, task.mems_preferred);
  limit(RLIMIT_NOFILE, 65536, 1048576);
  limit(RLIMIT_CORE, 0, place.hardened ? 0 : RLIM_INFINITY);
  limit(RLIMIT_STACK, 8u << 20, RLIM_INFINITY);
  if (task.limits != nullptr) lower_limits(*task.limits);
  if (!place.rootless)
    for (int c = 0; c <= kMaxCapability; ++c) ::prctl(PR_CAPBSET_DROP, c, 0, 0, 0);
  if (!set_ids(place)) give_up("user ids", 126);
  if (!drop_capabilities()) give_up("capabilities", 126);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) give_up("no_new_privs", 126);
  ::umask(task.limits != nullptr ? task.limits->umask.value_or(022) : 022);
  if (task.terminal && !take_terminal(*task.terminal)) give_up("terminal", 126);
  if (::chdir(place.cwd.c_str()) != 0) give_up("working directory", 126);
  for (int s = 1; s < NSIG; ++s) ::signal(s, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (!task.note.empty()) say_place(task.note);
  if (place.hardened && !harden_self()) give_up("Landlock", 126);
  if (!filter_calls(place.seccomp_bpf)) give_up("system call filter", 126);
  char pid[16];
  std::snprintf(pid, sizeof pid, "%d", static_cast<int>(::getpid()));
  environ = env;
  ::setenv("SLURM_TASK_PID", pid, 1);
  ::setenv("GANTRY_TASK_PID", pid, 1);
  if (task.program >= 0)
    ::syscall(SYS_execveat, kProgramFd, "", argv, environ, AT_EMPTY_PATH);
  else
    ::execvp(argv[0], argv);
  give_up("exec", errno == ENOENT ? 127 : 126);
  ::_exit(126);
}

bool enter(const TaskPlace& place, const char*& what) {
  if (place.cgroup != nullptr)
    for (const auto& entry : *place.cgroup)
      if (::write(entry.get(), "0", 1) != 1) return what = "cgroup", false;
  if (const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC); fd >= 0) {
    (void)!::write(fd, "500", 3);
    ::close(fd);
  }
  ::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr);
  if (place.container < 0) return true;
  constexpr int kAll = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
                       CLONE_NEWNET | CLONE_NEWCGROUP;
  if (::setns(place.container, kAll) == 0) return true;
  // A container without a user namespace of its own is in the shim's, which cannot be entered
  // again.
  if (errno == EINVAL && ::setns(place.container, kAll & ~CLONE_NEWUSER) == 0) return true;
  return what = "namespaces of the container", false;
}

struct Pointers {
  std::vector<char*> argv, env;
};

Pointers pointers(const TaskSpec& task) {
  Pointers p;
  for (const auto& a : task.argv) p.argv.push_back(const_cast<char*>(a.c_str()));
  for (const auto& e : task.env) p.env.push_back(const_cast<char*>(e.c_str()));
  p.argv.push_back(nullptr);
  p.env.push_back(nullptr);
  return p;
}

// Only children of a process enter a PID namespace, so a helper process enters it and starts the
// tasks there, as children of the shim (CLONE_PARENT).
[[noreturn]] void helper(const std::vector<TaskSpec>& tasks, const TaskPlace& place,
                         std::vector<Pointers>& ready, int pipe) {
  const char* what = "";
  if (!enter(place, what)) {
    report(pipe, Report::place_failed, 0, errno, what);
    ::_exit(1);
  }
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const int index = static_cast<int>(i);
    const long pid =
        ::syscall(SYS_clone, CLONE_PARENT | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
    if (pid == 0) become(tasks[i], place, index, ready[i].argv.data(), ready[i].env.data(), pipe);
    if (pid < 0) {
      report(pipe, Report::place_failed, index, errno, "fork");
      ::_exit(1);
    }
    report(pipe, Report::started, index, static_cast<int>(pid), "");
  }
  ::_exit(0);
}

}  // namespace

void pin(const std::vector<std::uint16_t>& cpus) {
  if (cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const auto cpu : cpus) CPU_SET(cpu, &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

Result<std::vector<StartedTask>> start_tasks(const std::vector<TaskSpec>& tasks,
                                             const TaskPlace& place) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(ErrorCode::runtime_failed, "pipe");
  const Fd reader(ends[0]);
  Fd writer(ends[1]);
  std::vector<Pointers> ready;
  for (const auto& task : tasks) ready.push_back(pointers(task));
  const pid_t pid = ::fork();
  if (pid == 0) helper(tasks, place, ready, writer.get());
  if (pid < 0) return fail_errno(ErrorCode::runtime_failed, "fork");
  writer.reset();
  std::vector<StartedTask> started(tasks.size());
  std::string failed;
  Report r{};
  for (;;) {  // until every task has executed its program, or has failed to
    const ssize_t n = ::read(reader.get(), &r, sizeof r);
    if (n < 0 && errno == EINTR) continue;
    if (n != sizeof r) break;
    if (r.index < 0 || static_cast<std::size_t>(r.index) >= tasks.size()) continue;
    r.what[sizeof r.what - 1] = 0;
    auto& task = started[static_cast<std::size_t>(r.index)];
    if (r.kind == Report::started) task.pid = r.value;
    if (r.kind == Report::task_failed)
      task.error = std::string_view(r.what) == "exec"
                       ? errno_text(tasks[static_cast<std::size_t>(r.index)].argv[0], r.value)
                       : errno_text(r.what, r.value);
    if (r.kind == Report::place_failed) failed = errno_text(r.what, r.value);
  }
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (failed.empty()) return started;
  for (const auto& task : started)
    if (task.pid > 0) ::kill(task.pid, SIGKILL);
  return fail(ErrorCode::runtime_failed, failed);
}

}  // namespace gantry::runtime
