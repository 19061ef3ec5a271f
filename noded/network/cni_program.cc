#include "noded/network/cni_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "common/fd.h"

namespace gantry::network {
namespace {

constexpr std::size_t kMostOutput = 1 << 20;

struct Pipe {
  Fd read, write;
};

// Both ends go with an exec; the program gets its ends by other numbers.
Pipe make_pipe() {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  return {Fd(ends[0]), Fd(ends[1])};
}

pid_t spawn(const std::string& path, const std::vector<std::string>& env, const Pipe& in,
            const Pipe& out, const Pipe& err) {
  posix_spawn_file_actions_t actions{};
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in.read.get(), 0);
  ::posix_spawn_file_actions_adddup2(&actions, out.write.get(), 1);
  ::posix_spawn_file_actions_adddup2(&actions, err.write.get(), 2);
  posix_spawnattr_t attributes{};
  ::posix_spawnattr_init(&attributes);
  sigset_t none{}, all{};
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(
      &attributes,
      static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP));
  std::vector<char*> variables;
  for (const std::string& one : env) variables.push_back(const_cast<char*>(one.c_str()));
  variables.push_back(nullptr);
  std::array<char*, 2> argv{const_cast<char*>(path.c_str()), nullptr};
  pid_t child = -1;
  if (::posix_spawn(&child, path.c_str(), &actions, &attributes, argv.data(), variables.data()) !=
      0)
    child = -1;
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  return child;
}

// Takes what is there; false: that was the last.
bool drain(const Fd& from, std::string& to) {
  std::array<char, 16384> buffer{};
  const ssize_t n = ::read(from.get(), buffer.data(), buffer.size());
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  if (to.size() < kMostOutput) to.append(buffer.data(), static_cast<std::size_t>(n));
  return n > 0;
}

}  // namespace

ProgramEnd run_program(const std::string& path, const std::vector<std::string>& env,
                       const std::string& input, Duration patience) {
  ProgramEnd end;
  Pipe in = make_pipe(), out = make_pipe(), err = make_pipe();
  const Fd limit(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
  const itimerspec time{{}, {patience.us / 1'000'000, patience.us % 1'000'000 * 1'000}};
  if (!in.read || !out.read || !err.read || ::timerfd_settime(limit.get(), 0, &time, nullptr) != 0)
    return end;
  const pid_t child = spawn(path, env, in, out, err);
  if (child < 0) return end;
  in.read.reset();
  out.write.reset();
  err.write.reset();
  ::fcntl(in.write.get(), F_SETFL, O_NONBLOCK);
  std::size_t written = 0;
  while (out.read || err.read) {
    // A descriptor of -1 is passed over.
    std::array<pollfd, 4> ready{{{limit.get(), POLLIN, 0},
                                 {in.write ? in.write.get() : -1, POLLOUT, 0},
                                 {out.read ? out.read.get() : -1, POLLIN, 0},
                                 {err.read ? err.read.get() : -1, POLLIN, 0}}};
    (void)::poll(ready.data(), ready.size(), -1);
    if (ready[0].revents != 0) {
      end.in_time = false;
      ::kill(-child, SIGKILL);
      break;
    }
    if (ready[1].revents != 0) {
      const ssize_t n = ::write(in.write.get(), input.data() + written, input.size() - written);
      if (n > 0) written += static_cast<std::size_t>(n);
      if (written == input.size() || (n < 0 && errno != EAGAIN && errno != EINTR)) in.write.reset();
    }
    if (ready[2].revents != 0 && !drain(out.read, end.output)) out.read.reset();
    if (ready[3].revents != 0 && !drain(err.read, end.errors)) err.read.reset();
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  end.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return end;
}

}  // namespace gantry::network
