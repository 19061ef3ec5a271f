#include "cli/cluster/daemons.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <map>
#include <utility>

#include "cli/cluster/watch.h"
#include "cli/columns/gpu_columns.h"
#include "cli/files.h"
#include "cli/session.h"
#include "common/text/hostlist.h"

namespace gantry::cli {
namespace {

constexpr Duration kLook = milliseconds(20);  // how often to look whether a process has ended

// The start time of a process: field 22 of /proc/PID/stat. Fields are counted after the name,
// because the name may contain blanks and brackets. Returns "" if the process is gone or a zombie.
std::string start_time_of(pid_t pid) {
  const auto text = read_small_file(fmt::format("/proc/{}/stat", pid));
  if (!text || !*text) return {};
  const std::size_t name_end = (*text)->rfind(')');
  if (name_end == std::string::npos) return {};
  std::string_view rest = std::string_view(**text).substr(name_end + 1);
  for (int field = 3; !rest.empty(); ++field) {
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    const std::size_t end = std::min(rest.find(' '), rest.size());
    if (field == 3 && rest.substr(0, end) == "Z") return {};
    if (field == 22) return std::string(rest.substr(0, end));
    rest.remove_prefix(end);
  }
  return {};
}

[[noreturn]] void become_daemon(const Daemon& daemon, std::vector<char*>& argv) {
  ::setsid();
  const int null = ::open("/dev/null", O_RDONLY);
  const int log = ::open(daemon.log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0640);
  if (null < 0 || log < 0) ::_exit(126);
  ::dup2(null, STDIN_FILENO);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::closefrom(3);
  ::chdir("/") == 0 ? void() : ::_exit(126);
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

}  // namespace

Result<std::string> find_program(const std::string& name) {
  std::array<char, 4096> self{};
  const ssize_t length = ::readlink("/proc/self/exe", self.data(), self.size() - 1);
  std::vector<std::string> places;
  if (length > 0) {
    const std::string path(self.data(), static_cast<std::size_t>(length));
    places.push_back(path.substr(0, path.rfind('/')));
    places.push_back(places[0] + "/../sbin");
  }
  std::string_view rest = std::getenv("PATH") == nullptr ? "" : std::getenv("PATH");
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    places.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  for (const std::string& place : places)
    if (::access((place + "/" + name).c_str(), X_OK) == 0) return place + "/" + name;
  return fail(ErrorCode::not_found,
              fmt::format("the program {} is neither beside this one nor on PATH", name));
}

namespace {

// Forks a child that becomes the daemon, and writes its pid file.
Result<pid_t> fork_daemon(const Daemon& daemon) {
  std::vector<std::string> words = daemon.argv;
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid < 0)
    return fail(ErrorCode::io_error,
                fmt::format("cannot start {}: {}", daemon.name, std::strerror(errno)));
  if (pid == 0) become_daemon(daemon, argv);
  ASSIGN(written,
         write_file(daemon.pid_file, fmt::format("{} {}\n", pid, start_time_of(pid)), 0644));
  return pid;
}

// Turns this process into the watch of a daemon. It writes nothing to the terminal and keeps none
// of the inherited descriptors.
[[noreturn]] void become_watch(const Daemon& daemon, unsigned most_crashes, int ready) {
  ::setsid();
  const int null = ::open("/dev/null", O_RDWR);
  const int log = ::open(daemon.log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0640);
  if (null < 0 || log < 0 || ::dup2(ready, 3) != 3) ::_exit(126);
  ::dup2(null, STDIN_FILENO);
  ::dup2(null, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::closefrom(4);
  if (::chdir("/") != 0) ::_exit(126);
  bool told = false;
  watch_daemon(
      daemon, most_crashes, [&] { return fork_daemon(daemon); },
      [&] {
        if (!std::exchange(told, true)) ::close(3);
      });
}

}  // namespace

Result<void> start_daemon(const Daemon& daemon, unsigned most_crashes) {
  if (most_crashes == 0) {
    const auto pid = fork_daemon(daemon);
    return pid ? Result<void>{} : tl::unexpected(pid.error());
  }
  int ready[2];
  if (::pipe2(ready, O_CLOEXEC) != 0)
    return fail(ErrorCode::io_error,
                fmt::format("cannot start {}: {}", daemon.name, std::strerror(errno)));
  const pid_t pid = ::fork();
  if (pid == 0) become_watch(daemon, most_crashes, ready[1]);
  ::close(ready[1]);
  if (pid > 0) {  // the watch closes the pipe when the pid file is written
    char nothing = 0;
    while (::read(ready[0], &nothing, 1) < 0 && errno == EINTR) {
    }
  }
  ::close(ready[0]);
  if (pid < 0)
    return fail(ErrorCode::io_error,
                fmt::format("cannot start {}: {}", daemon.name, std::strerror(errno)));
  return {};
}

std::string why_stopped(const Daemon& daemon) {
  const auto text = read_small_file(why_file(daemon));
  if (!text || !*text) return {};
  return (*text)->substr(0, (*text)->find('\n'));
}

std::optional<pid_t> running_pid(const Daemon& daemon) {
  const auto text = read_small_file(daemon.pid_file);
  if (!text || !*text) return std::nullopt;
  char* end = nullptr;
  const long pid = std::strtol((*text)->c_str(), &end, 10);
  if (pid <= 1 || *end != ' ') return std::nullopt;
  std::string start = end + 1;
  while (!start.empty() && start.back() == '\n') start.pop_back();
  const auto id = static_cast<pid_t>(pid);
  ::waitpid(id, nullptr, WNOHANG);  // reaps it if it is a child of this process and has ended
  if (start.empty() || start_time_of(id) != start) return std::nullopt;
  return id;
}

Result<void> stop_daemon(const Daemon& daemon, Duration patience) {
  const auto pid = running_pid(daemon);
  const std::string start = pid ? start_time_of(*pid) : std::string();
  // The pid file is removed first, so that the watch does not start the daemon again.
  ::unlink(daemon.pid_file.c_str());
  ::unlink(why_file(daemon).c_str());
  if (!pid) return {};
  const auto runs = [&] {
    ::waitpid(*pid, nullptr, WNOHANG);  // reaps it if it is a child of this process
    return !start.empty() && start_time_of(*pid) == start;
  };
  for (const int signal : {SIGTERM, SIGKILL}) {
    if (!runs()) return {};
    if (::kill(*pid, signal) != 0 && errno != ESRCH) {
      const int error = errno;
      (void)write_file(daemon.pid_file, fmt::format("{} {}\n", *pid, start), 0644);
      return fail(
          ErrorCode::permission_denied,
          fmt::format("cannot stop {} (process {}): {}", daemon.name, *pid, std::strerror(error)));
    }
    for (Duration waited; waited < patience && runs(); waited = waited + kLook) {
      const timespec pause{0, kLook.us * 1'000};
      ::nanosleep(&pause, nullptr);
    }
  }
  if (!runs()) return {};
  (void)write_file(daemon.pid_file, fmt::format("{} {}\n", *pid, start), 0644);
  return fail(ErrorCode::timed_out, fmt::format("{} does not end", daemon.name));
}

std::string log_tail(const Daemon& daemon, std::size_t lines) {
  const int fd = ::open(daemon.log_file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  constexpr off_t kTail = 16 << 10;
  const off_t size = ::lseek(fd, 0, SEEK_END);
  std::string text(static_cast<std::size_t>(std::min<off_t>(size, kTail)), '\0');
  const ssize_t n = ::pread(fd, text.data(), text.size(), size - static_cast<off_t>(text.size()));
  ::close(fd);
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  std::size_t at = text.size();
  if (at > 0) --at;  // skip the newline at the end
  for (std::size_t seen = 0; at > 0; --at)
    if (text[at - 1] == '\n' && ++seen == lines) break;
  return text.substr(at);
}

namespace {

constexpr Duration kRestartPatience =
    seconds(60);  // a controller with a store of millions of jobs needs a while to read it
constexpr timespec kRestartPause{0, 50'000'000};

}  // namespace

Result<void> reconfigure(std::string_view program) {
  ASSIGN(session, Session::open(program));
  ASSIGN(before, session->call<proto::PingReply>(proto::Ping{}));
  TRY(session->call<proto::Ok>(proto::Reconfigure{}));
  for (const Instant end = system_now() + kRestartPatience; system_now() < end;) {
    ::nanosleep(&kRestartPause, nullptr);
    auto again = Session::open(program);
    if (!again) continue;
    const auto now = again->call<proto::PingReply>(proto::Ping{}, seconds(5));
    if (!now || now->started == before->started) continue;
    if (now->config_problem.empty()) return {};
    return fail(ErrorCode::wrong_state,
                "the controller could not start with the new configuration and goes on with the "
                "one it had: " +
                    now->config_problem);
  }
  return fail(ErrorCode::timed_out,
              "the controller does not answer; its log says what it waits for");
}

std::vector<std::string> check_cluster(const std::vector<proto::NodeRow>& nodes) {
  const std::vector<Drift> drift = drift_of(nodes);
  std::vector<std::string> out;
  for (const proto::NodeRow& node : nodes) {
    const auto say = [&](const std::string& what) { out.push_back(node.name + ": " + what); };
    const std::string why = node.reason.empty() ? "" : ": " + node.reason;
    if (node.health != NodeHealth::up) say(fmt::format("{}{}", enum_name(node.health), why));
    if (node.intent != NodeIntent::open) say(fmt::format("{}{}", enum_name(node.intent), why));
    for (const Drift& d : drift) {
      const bool idle = d.wanted == "-";  // an idle slice that waits for its next job
      if (d.node != node.name || idle) continue;
      if (d.gpu.empty() && d.found.starts_with("none: "))
        say(fmt::format("no GPUs, {} declared: {}", d.wanted, d.found.substr(6)));
      else if (d.gpu.empty())
        say(fmt::format("{} wanted, {} found", d.wanted, d.found));
      else
        say(fmt::format("GPU {}: {} wanted, found {}", d.gpu, d.wanted, d.found));
    }
  }
  return out;
}

std::vector<std::string> layers_that_are_off(const std::vector<proto::NodeRow>& nodes) {
  std::map<std::string, std::vector<std::string>> where;
  for (const proto::NodeRow& node : nodes)
    for (const std::string& layer : node.layers_off) where[layer].push_back(node.name);
  std::vector<std::string> out;
  for (const auto& [layer, names] : where)
    out.push_back(fmt::format("{}: {}", compress_hostlist(names), layer));
  return out;
}

}  // namespace gantry::cli
