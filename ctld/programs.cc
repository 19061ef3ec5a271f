#include "ctld/programs.h"

#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>

#include "ctld/users_program.h"

namespace gantry::ctld {
namespace {

using RunClock = std::chrono::steady_clock;
constexpr std::chrono::seconds kMostRunTime{300};  // as in Slurm
constexpr std::chrono::milliseconds kLookForRunEnd{50};

std::string name_of(const core::ProgramRun& run) {
  return fmt::format("trigger {} of {}: {} {}", run.trigger.value(), run.user, run.program,
                     run.argument);
}

// Starts a program in "/", with empty standard files, in a session of its own.
Result<pid_t> start_run(const core::ProgramRun& run, const std::string& client_config) {
  std::vector<std::string> command{run.program, run.argument};
  // The program "env" would take a path that contains = for a variable.
  if (!client_config.empty())
    command.insert(command.begin(), {"sh", "-c", "GANTRY_CONF=$0 exec \"$@\"", client_config});
  auto words = words_as_user(run.uid, Privileges::never, std::move(command));
  if (!words)
    return fail(words.error().code, fmt::format("{}: {}", name_of(run), words.error().message));
  const std::string first = words->front();
  auto pid = start_words(std::move(*words), std::nullopt, OwnSession::yes);
  if (!pid)
    return fail(pid.error().code,
                fmt::format("{}: cannot start {}: {}", name_of(run), first, pid.error().message));
  return pid;
}

}  // namespace

struct Programs::Running {
  core::ProgramRun run;
  pid_t pid = 0;
  RunClock::time_point until;
  bool killed = false;
};

Programs::Programs(Note note, std::string client_config)
    : note_(std::move(note)),
      client_config_(std::move(client_config)),
      thread_([this] { serve(); }) {}

Programs::~Programs() {
  {
    std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Programs::run(std::vector<core::ProgramRun> programs) {
  std::size_t dropped = 0;
  {
    std::lock_guard guard(mutex_);
    for (core::ProgramRun& one : programs)
      if (!waiting_.push(std::move(one))) ++dropped;
  }
  wake_.notify_one();
  if (dropped > 0)
    note_(fmt::format("triggers: {} programs dropped, as {}, or {} of one user, wait already",
                      dropped, kMostWaitingPrograms, kMostWaitingOfUser));
}

std::optional<core::ProgramRun> Programs::take(const std::vector<Running>& running) {
  if (running.size() >= kMostPrograms) return std::nullopt;
  return waiting_.take([&](const core::ProgramRun& one) {
    return std::count_if(running.begin(), running.end(), [&](const Running& r) {
             return r.run.uid == one.uid;
           }) < static_cast<std::ptrdiff_t>(kMostProgramsOfUser);
  });
}

void Programs::serve() {
  std::vector<Running> running;
  while (true) {
    std::optional<core::ProgramRun> next;
    {
      std::unique_lock guard(mutex_);
      if (running.empty())
        wake_.wait(guard, [&] { return stopping_ || !waiting_.empty(); });
      else
        wake_.wait_for(guard, kLookForRunEnd);
      if (stopping_) return;
      next = take(running);
    }
    if (next) {
      if (auto pid = start_run(*next, client_config_); pid)
        running.push_back({std::move(*next), *pid, RunClock::now() + kMostRunTime});
      else
        note_(pid.error().message);
    }
    std::erase_if(running, [&](Running& one) {
      int status = 0;
      const pid_t done = ::waitpid(one.pid, &status, WNOHANG);
      if (done == 0 && RunClock::now() > one.until && !std::exchange(one.killed, true)) {
        ::kill(-one.pid, SIGKILL);  // also ends processes that the program started
        note_(fmt::format("{}: took over {} s", name_of(one.run), kMostRunTime.count()));
      }
      if (done == 0 || (done < 0 && errno == EINTR)) return false;
      // A program that took too long has been reported already. If waitpid() failed, nothing is
      // known.
      const auto failed = done > 0 ? failed_ending(status) : std::nullopt;
      if (failed && !(one.killed && WIFSIGNALED(status)))
        note_(fmt::format("{}: {}", name_of(one.run), *failed));
      return true;
    });
  }
}

}  // namespace gantry::ctld
