// Daemons that `gantry up` starts: processes of their own session, with a log and a pid file.
//
// A pid file holds "PID START" (START as in /proc/PID/stat), so that a process that has the number
// by chance, later, is never taken for ours.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "common/time/time.h"

namespace gantry::cli {

struct Daemon {
  std::string name;  // "ctld", "node1"
  std::string pid_file;
  std::string log_file;
  std::vector<std::string> argv;  // [0] is the program's path
};

// The program NAME beside our own executable, else on PATH.
Result<std::string> find_program(const std::string& name);

// Starts it and writes the pid file. That it runs on is not known yet. `most_crashes`: one that
// crashes is started again, until it has crashed so often within a minute (watch.h); 0: it is not.
Result<void> start_daemon(const Daemon& daemon, unsigned most_crashes = 0);

std::optional<pid_t> running_pid(const Daemon& daemon);  // nullopt: not there, or not ours

// Why it is no longer started again, for a person; "" if nothing was given up.
std::string why_stopped(const Daemon& daemon);

// SIGTERM, and SIGKILL after `patience`; removes the pid file. Fine if it does not run.
Result<void> stop_daemon(const Daemon& daemon, Duration patience);

// The last lines of the log, for a person who wonders why.
std::string log_tail(const Daemon& daemon, std::size_t lines);

}  // namespace gantry::cli
