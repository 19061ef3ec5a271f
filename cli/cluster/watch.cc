#include "cli/cluster/watch.h"

#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <deque>

#include "cli/files.h"
#include "cli/session.h"
#include "common/text/text.h"

namespace gantry::cli {
namespace {

constexpr int kWrongCommandLine = 2;
constexpr int kStoredDataDamaged = 65;

void say(const Daemon& daemon, const std::string& text) {
  fmt::print(stderr, "{} gantry up: {} {}\n", format_time(system_now()), daemon.name, text);
  std::fflush(stderr);
}

std::string words_of(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("was ended by signal {} ({})", WTERMSIG(status),
                       ::strsignal(WTERMSIG(status)));
  return fmt::format("ended with status {}", WEXITSTATUS(status));
}

// Whether the pid file still names this daemon.
bool is_wanted(const Daemon& daemon, pid_t pid) {
  const auto text = read_small_file(daemon.pid_file);
  return text && *text && (*text)->starts_with(fmt::format("{} ", pid));
}

[[noreturn]] void give_up(const Daemon& daemon, const std::string& why) {
  say(daemon, why);
  (void)write_file(why_file(daemon), why + "\n", 0644);
  ::_exit(0);
}

int wait_for(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

std::string why_file(const Daemon& daemon) {
  return daemon.pid_file + ".why";
}

void watch_daemon(const Daemon& daemon, unsigned most, const std::function<Result<pid_t>()>& start,
                  const std::function<void()>& started) {
  ::prctl(PR_SET_NAME, "gantry-watch");
  ::unlink(why_file(daemon).c_str());
  std::deque<Instant> crashes;  // times of crashes within the window
  while (true) {
    const auto pid = start();
    started();
    if (!pid) give_up(daemon, "cannot be started again: " + pid.error().message);
    const int status = wait_for(*pid);
    if (!is_wanted(daemon, *pid) || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) ::_exit(0);
    const std::string words = words_of(status);
    if (WIFEXITED(status) &&
        (WEXITSTATUS(status) == kWrongCommandLine || WEXITSTATUS(status) == kStoredDataDamaged))
      give_up(daemon, words + " and is not started again, which would not help: see above");
    const Instant now = system_now();
    crashes.push_back(now);
    while (crashes.front() + kCrashWindow < now) crashes.pop_front();
    if (crashes.size() >= most)
      give_up(daemon,
              fmt::format("{}, {} times within {} s, and is not started again; look at the log {}, "
                          "then start it with `gantry up`",
                          words, crashes.size(), kCrashWindow.seconds(), daemon.log_file));
    Duration pause = kFirstPause;
    for (std::size_t i = 1; i < crashes.size(); ++i) pause = std::min(pause * 2, kLongestPause);
    say(daemon, fmt::format("{} and is started again in {} ms", words, pause.us / 1000));
    const timespec time{pause.us / 1'000'000, pause.us % 1'000'000 * 1000};
    ::nanosleep(&time, nullptr);
    if (!is_wanted(daemon, *pid)) ::_exit(0);
  }
}

}  // namespace gantry::cli
