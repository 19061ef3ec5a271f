// gantry-init: PID 1 of every container. Static and tiny, so that it starts in well under a
// millisecond and needs nothing of the image.
//
//   gantry-init run  PROGRAM [ARG...]   starts the program at once
//   gantry-init hold PROGRAM [ARG...]   starts it when the shim says go
//   gantry-init pause                   starts nothing: steps enter the container's namespaces
//
// It forwards signals to the program's process group, reaps orphans, and ends with the program's
// status; the kernel then ends whatever is left in the PID namespace. Descriptor 3 is a socket to
// the shim (noded/shim/init_protocol.h), 4 to 6 are the program's standard files; when it closes,
// the shim is gone, and so is the job.
#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "noded/shim/init_protocol.h"

namespace {

using gantry::runtime::InitNote;
using gantry::runtime::InitWord;
using gantry::runtime::kInitFileCount;
using gantry::runtime::kInitFiles;
using gantry::runtime::kInitSocket;

void tell(InitWord word, int value) {
  const InitNote note{word, value};
  while (send(kInitSocket, &note, sizeof note, MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

[[noreturn]] void become(char** program, const sigset_t& mask) {
  setsid();
  for (int s = 1; s < NSIG; ++s) signal(s, SIG_DFL);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  char pid[16];
  snprintf(pid, sizeof pid, "%d", static_cast<int>(getpid()));
  setenv("SLURM_TASK_PID", pid, 1);
  setenv("GANTRY_TASK_PID", pid, 1);
  tell(InitWord::child, 0);  // the kernel adds our pid, as the shim sees it
  execvp(program[0], program);
  const int error = errno;
  tell(InitWord::exec_failed, error);
  _exit(error == ENOENT ? 127 : 126);
}

int start(char** program, const sigset_t& mask) {
  const pid_t pid = fork();
  if (pid == 0) become(program, mask);
  if (pid < 0) {
    tell(InitWord::exec_failed, errno);
    _exit(126);
  }
  return pid;
}

int exit_code(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// Reaps all that ended; returns true when `child` was among them.
bool reap(int child, int& status) {
  bool ended = false;
  for (;;) {
    int s = 0;
    const pid_t pid = waitpid(-1, &s, WNOHANG);
    if (pid <= 0) return ended;
    if (pid == child) {
      status = s;
      ended = true;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const bool pause_mode = strcmp(argv[1], "pause") == 0;
  const bool hold = strcmp(argv[1], "hold") == 0;
  if (!pause_mode && argc < 3) return 2;
  fcntl(kInitSocket, F_SETFD, FD_CLOEXEC);
  for (int i = 0; i < kInitFileCount; ++i) {
    if (dup2(kInitFiles + i, i) != i) return 3;
    close(kInitFiles + i);
  }

  sigset_t all, old;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &old);
  sigemptyset(&old);
  const int signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);

  int child = 0;
  bool ending = false;  // pause mode was asked to end
  tell(InitWord::up, 0);
  if (!pause_mode && !hold) child = start(argv + 2, old);

  for (;;) {
    pollfd watched[2] = {{signals, POLLIN, 0}, {kInitSocket, POLLIN, 0}};
    poll(watched, 2, ending ? 50 : -1);
    if ((watched[1].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
      InitNote note{};
      const ssize_t n = recv(kInitSocket, &note, sizeof note, MSG_DONTWAIT);
      if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return 137;  // the shim is gone
      if (n == sizeof note && note.word == InitWord::go && hold && child == 0)
        child = start(argv + 2, old);
    }
    signalfd_siginfo info;
    while (read(signals, &info, sizeof info) == sizeof info) {
      const int number = static_cast<int>(info.ssi_signo);
      if (number == SIGCHLD) continue;
      if (child > 0) kill(-child, number);
      if (child == 0 && (number == SIGTERM || number == SIGINT)) ending = true;
    }
    int status = 0;
    if (reap(child, status) && child > 0) {
      tell(InitWord::exited, status);
      return exit_code(status);
    }
    // Nothing but us left in the namespace: a paused or held container that was told to end does.
    if (ending && child == 0 && kill(-1, 0) != 0 && errno == ESRCH) return 143;
  }
}
