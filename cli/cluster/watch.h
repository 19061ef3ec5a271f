// The watch: a process that starts a daemon of `gantry up` again when it has crashed. Each daemon
// has its own watch, which is its parent and ends with it.
//
// The pid file names the wanted daemon. If it is gone or names another process, `gantry down` (or a
// later `gantry up`) has decided so, and the watch ends. A daemon is not started again if it
// stopped on request (status 0), has a wrong command line (2), reports damaged stored data (65), or
// has crashed too often. The reason is then written to the daemon's log, and to a file beside the
// pid file for `gantry status`.
#pragma once

#include <functional>
#include <string>

#include "cli/cluster/daemons.h"

namespace gantry::cli {

inline constexpr Duration kCrashWindow = seconds(60);
inline constexpr Duration kFirstPause = milliseconds(100);  // doubles with each crash in the window
inline constexpr Duration kLongestPause = seconds(10);

// Runs the watch; never returns. The caller must be a separate process, whose standard error is the
// daemon's log. `start` forks the daemon, writes the pid file and returns the pid. The watch gives
// up at the `most`-th crash within the window.
[[noreturn]] void watch_daemon(const Daemon& daemon, unsigned most,
                               const std::function<Result<pid_t>()>& start,
                               const std::function<void()>& started);

std::string why_file(const Daemon& daemon);

}  // namespace gantry::cli
