// Runs a function in a child process. Tests use it where a process dies, where an assertion fails,
// and for mounts that must not outlive the test. The child never returns into doctest: it ends with
// _exit, and reports what went wrong through a pipe.
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>

namespace gantry::store {

struct ChildEnd {
  int exit_code = -1;  // -1 if a signal ended the child
  int signal = 0;
  std::string report;  // everything that the child wrote to its report
};

class Child {
 public:
  // `body` gets the descriptor to report to, and returns the exit code.
  explicit Child(const std::function<int(int report)>& body) {
    int ends[2];
    if (::pipe(ends) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[0]);
      for (int fatal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGINT, SIGTERM})
        ::signal(fatal, SIG_DFL);  // doctest's signal handlers must not run in a child.
      ::_exit(body(ends[1]));
    }
    ::close(ends[1]);
    report_ = ends[0];
  }
  ~Child() {
    if (!ended_) {
      kill();
      wait();
    }
    if (report_ >= 0) ::close(report_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  [[nodiscard]] int report() const { return report_; }
  void kill() const { ::kill(pid_, SIGKILL); }
  // Waits until the child reports something or ends, but no longer than `limit`.
  void watch(std::chrono::microseconds limit) const {
    pollfd on_report{report_, POLLIN, 0};
    timespec time{0, limit.count() * 1000};
    ::ppoll(&on_report, 1, &time, nullptr);
  }
  // Waits for `time` whatever the child does, so that a kill can hit the child at any point.
  static void leave_alone(std::chrono::microseconds time) {
    timespec limit{0, time.count() * 1000};
    ::ppoll(nullptr, 0, &limit, nullptr);
  }
  ChildEnd wait() {  // The report is read to its end first.
    ChildEnd end;
    char buffer[4096];
    for (ssize_t n = 0; (n = ::read(report_, buffer, sizeof buffer)) > 0;)
      end.report.append(buffer, static_cast<std::size_t>(n));
    int status = 0;
    ::waitpid(pid_, &status, 0);
    ended_ = true;
    if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
    return end;
  }

 private:
  pid_t pid_ = -1;
  int report_ = -1;
  bool ended_ = false;
};

inline void say(int report, std::string_view text) {
  [[maybe_unused]] ssize_t n = ::write(report, text.data(), text.size());
}

}  // namespace gantry::store
