#include "noded/runtime/shim_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "noded/machine/user_child.h"
#include "noded/runtime/job_dir.h"

namespace gantry::runtime {

namespace {

constexpr int kThirdFd = 3;

Fd open_pidfd(int pid) {
  return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

// Moves a descriptor above the numbers that the child's descriptors get, so that dup2 never has
// source and target equal.
Fd high(int fd) {
  return Fd(::fcntl(fd, F_DUPFD_CLOEXEC, 10));
}

struct SpawnSetup {
  posix_spawn_file_actions_t files{};
  posix_spawnattr_t attributes{};
  SpawnSetup(int third, int log) {
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&files, 0, 1);
    posix_spawn_file_actions_adddup2(&files, log >= 0 ? log : 0, 2);
    if (third >= 0) posix_spawn_file_actions_adddup2(&files, third, kThirdFd);
    posix_spawnattr_init(&attributes);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;
  ~SpawnSetup() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
};

constexpr int kPatienceMs = 5000;
constexpr int kMostInVain = 3;
// Space in the template's command line for the arguments of a shim: "job" or "step", two numbers
// with a dot, and the number of a step.
constexpr std::size_t kPadding = 64;

bool readable(const Fd& fd) {
  pollfd watched{fd.get(), POLLIN, 0};
  int n = 0;
  while ((n = ::poll(&watched, 1, kPatienceMs)) < 0 && errno == EINTR) {
  }
  return n == 1;
}

}  // namespace

Result<ShimProcess> start_process(const std::vector<std::string>& words, int third, int log) {
  std::vector<char*> argv;
  for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  char path_variable[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
  char* env[] = {path_variable, nullptr};
  const Fd source = third >= 0 ? high(third) : Fd();
  SpawnSetup setup(source.get(), log);
  ShimProcess process;
  const int error =
      ::posix_spawn(&process.pid, argv[0], &setup.files, &setup.attributes, argv.data(), env);
  if (error != 0) return fail(ErrorCode::runtime_failed, errno_text(words[0], error));
  process.pidfd = open_pidfd(process.pid);
  return process;
}

Result<Fd> take_lock(const std::string& dir) {
  const std::string path = dir + "/" + kLockFile;
  Fd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) return fail_errno(ErrorCode::io_error, path);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    return fail(ErrorCode::already_exists, dir + ": its shim runs already");
  return lock;
}

Result<ShimProcess> start_shim(const std::string& shim_path, const std::string& dir,
                               const std::vector<std::string>& args, int log) {
  ASSIGN(lock, take_lock(dir));
  std::vector<std::string> argv{shim_path};
  argv.insert(argv.end(), args.begin(), args.end());
  return start_process(argv, lock->get(), log);
}

ShimState find_shim(const std::string& dir, ShimProcess& found) {
  constexpr int kTries = 1000;
  const std::string path = dir + "/" + kLockFile;
  const Fd lock(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!lock) return ShimState::never_ran;
  for (int i = 0; i < kTries; ++i) {
    const bool ours = ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0;
    const auto words = split(trim(read_file(path).value_or("")), ' ');
    if (ours) return words[0].empty() ? ShimState::never_ran : ShimState::gone;
    int pid = 0;
    std::uint64_t start = 0;
    if (words.size() == 2) {
      std::from_chars(words[0].data(), words[0].data() + words[0].size(), pid);
      std::from_chars(words[1].data(), words[1].data() + words[1].size(), start);
    }
    if (pid > 0) {
      Fd pidfd = open_pidfd(pid);
      if (pidfd && start_time_of(pid) == start) {
        found.pid = pid;
        found.pidfd = std::move(pidfd);
        return ShimState::alive;
      }
    }
    // tidy-allow(sleep): no event tells when a process writes its pid file
    ::usleep(1000);  // it holds the lock and has not written its id yet, or is just ending
  }
  return ShimState::gone;
}

bool is_stopped(const ShimProcess& shim) {
  const auto text = read_file("/proc/" + std::to_string(shim.pid) + "/stat").value_or("");
  const auto close = text.rfind(')');  // the process name before it may contain any character
  if (close == std::string::npos || close + 2 >= text.size()) return false;
  return text[close + 2] == 'T' || text[close + 2] == 't';
}

void signal_shim(const ShimProcess& shim, int number) {
  if (shim.pidfd) ::syscall(SYS_pidfd_send_signal, shim.pidfd.get(), number, nullptr, 0);
}

bool reap_shim(const ShimProcess& shim) {
  if (!shim.pidfd) return true;
  siginfo_t info{};
  const int rc = ::waitid(P_PIDFD, static_cast<id_t>(shim.pidfd.get()), &info, WEXITED | WNOHANG);
  if (rc == 0) return info.si_pid != 0;
  pollfd gone{shim.pidfd.get(), POLLIN,
              0};  // an earlier noded started it, so it is not a child of this one
  return ::poll(&gone, 1, 0) == 1;
}

ShimTemplate::ShimTemplate(std::string shim_path, std::string state_dir, int log)
    : shim_path_(std::move(shim_path)), state_dir_(std::move(state_dir)), log_(log) {}

void ShimTemplate::start() {
  if (shim_path_.empty() || in_vain_ >= kMostInVain) return;
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return;
  socket_.reset(ends[0]);
  const Fd theirs(ends[1]);
  auto process = start_process({shim_path_, "template", state_dir_, std::string(kPadding, '.')},
                               theirs.get(), log_);
  if (!process || !process->pidfd) return socket_.reset();
  process_ = std::move(*process);
  ++in_vain_;
}

void ShimTemplate::look() {
  if (!process_.pidfd || !reap_shim(process_)) return;
  process_ = {};
  socket_.reset();
  start();
}

Result<ShimProcess> ShimTemplate::start_shim(const std::string& dir,
                                             const std::vector<std::string>& args) {
  if (!process_.pidfd) {
    auto shim = runtime::start_shim(shim_path_, dir, args, log_);
    start();
    return shim;
  }
  ShimProcess shim;
  {
    ASSIGN(lock, take_lock(dir));
    if (ask(args, *lock, shim)) return shim;
  }
  auto dead = end();
  if (!dead) return dead;
  switch (find_shim(dir, shim)) {
    case ShimState::alive: return shim;
    // The shim was made and has ended already; the pidfd of a dead template reports that too.
    case ShimState::gone: return dead;
    case ShimState::never_ran: break;
  }
  auto other = runtime::start_shim(shim_path_, dir, args, log_);
  start();
  return other;
}

bool ShimTemplate::ask(const std::vector<std::string>& args, const Fd& lock, ShimProcess& shim) {
  std::string words;
  for (const auto& arg : args) words += arg + '\0';
  if (!pass(socket_, words, lock.get()) || !readable(socket_)) return false;
  auto answer = take_passed(socket_);
  if (!answer.fd || answer.bytes.size() != sizeof shim.pid) return false;
  std::memcpy(&shim.pid, answer.bytes.data(), sizeof shim.pid);
  shim.pidfd = std::move(answer.fd);
  in_vain_ = 0;
  return true;
}

Result<ShimProcess> ShimTemplate::end() {
  auto process = std::exchange(process_, {});
  socket_.reset();
  signal_shim(process, SIGKILL);
  if (!readable(process.pidfd))
    return fail(ErrorCode::runtime_failed,
                "the shims' template (process " + std::to_string(process.pid) + ") does not end");
  reap_shim(process);
  return process;
}

}  // namespace gantry::runtime
