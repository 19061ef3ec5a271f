// Who starts a daemon of `gantry up` again when it has crashed: a process of its own for each,
// which is the daemon's parent and ends with it.
//
// The pid file is the order: it names the daemon that is wanted. When it names another process, or
// is gone, `gantry down` (or a later `gantry up`) has decided otherwise, and the watch ends. A
// daemon that stopped on request (status 0), has a wrong command line (2) or says that what it has
// stored is damaged (65) is not started again; nor is one that crashed too often. Why not is said
// in the daemon's log, and beside the pid file for `gantry status`.
#pragma once

#include <functional>
#include <string>

#include "cli/cluster/daemons.h"

namespace gantry::cli {

inline constexpr Duration kCrashWindow = seconds(60);
inline constexpr Duration kFirstPause = milliseconds(100);  // doubles with each crash in the window
inline constexpr Duration kLongestPause = seconds(10);

// In a process of its own, whose standard error is the daemon's log; never returns. `start` forks
// the daemon, writes the pid file and returns the pid. Gives up at the `most`-th crash within the
// window.
[[noreturn]] void watch_daemon(const Daemon& daemon, unsigned most,
                               const std::function<Result<pid_t>()>& start,
                               const std::function<void()>& started);

std::string why_file(const Daemon& daemon);

}  // namespace gantry::cli
