// The daemons that `gantry up` starts. Each runs in its own session and has a log and a pid file.
//
// A pid file contains "PID START" (START as in /proc/PID/stat). A process that later gets the same
// number by chance is therefore never mistaken for the daemon.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/proto/cluster.h"
#include "common/result.h"
#include "common/time/time.h"

namespace gantry::cli {

struct Daemon {
  std::string name;  // "ctld", "node1"
  std::string pid_file;
  std::string log_file;
  std::vector<std::string> argv;  // argv[0] is the program's path
};

// Finds the program NAME beside our own executable, else on PATH.
Result<std::string> find_program(const std::string& name);

// Starts a daemon and writes its pid file. Whether it keeps running is not known yet. A daemon that
// crashes is started again until it has crashed `most_crashes` times within a minute (watch.h);
// with 0 it is never started again.
Result<void> start_daemon(const Daemon& daemon, unsigned most_crashes = 0);

// Returns nullopt if it does not run, or if the process is another one.
std::optional<pid_t> running_pid(const Daemon& daemon);

// Why a daemon that crashed is not started again any more, as a sentence for a person; "" if it
// still would be.
std::string why_stopped(const Daemon& daemon);

// Sends SIGTERM, and SIGKILL after `patience`, and removes the pid file. It is no error if the
// daemon does not run.
Result<void> stop_daemon(const Daemon& daemon, Duration patience);

// The last lines of the log, for a person who looks for the cause of a failure.
std::string log_tail(const Daemon& daemon, std::size_t lines);

// Makes the controller and its nodes read their configuration again.

// Asks the controller to reconfigure and waits until it answers with the new configuration. The
// error tells what is wrong with the file, or why the controller could not start with it; the
// controller then continues with the old configuration.
Result<void> reconfigure(std::string_view program);

// The checks of `gantry check`.

// A line for each thing that is wrong, in the order of the nodes: "n1: ...".
std::vector<std::string> check_cluster(const std::vector<proto::NodeRow>& nodes);

// A line for each isolation layer that is off, with the nodes where it is and why: "n[1-2]:
// networks of jobs: ...". This is no fault: the machines cannot do more.
std::vector<std::string> layers_that_are_off(const std::vector<proto::NodeRow>& nodes);

}  // namespace gantry::cli
