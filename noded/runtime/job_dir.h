// The directory of one attempt: <state>/jobs/<job>.<attempt>/, mode 0700, made by noded.
//
//   launch.msgpack   LaunchRequest                 shim.lock        locked while the shim lives;
//   run/             bound at /run/gantry: script                   holds "PID START_TIME"
//   running.msgpack  RunningRecord                 exit.msgpack     ExitRecord, durable
//   notice           text for the job's stderr     runtime.log      messages of crun or runc
//   hosts            bound at /etc/hosts           steps.oom        a byte for each process of a
//                                                                  step that was killed for memory
//   signal.<m>       number of a signal for a sandbox with a kernel of its own, until the shim has
//                    passed it on
//   steps/<n>/       launch.msgpack (StepRequest), shim.lock, exit.msgpack;
//                    attach.<m>: StepAttachment, until the shim has taken it;
//                    notice.<m>: a line for the step's starter, likewise;
//                    time_limit: microseconds, replaces the order's once it was changed
#pragma once

#include <algorithm>
#include <csignal>
#include <optional>
#include <string>
#include <string_view>

#include "common/time/time.h"
#include "noded/machine/files.h"
#include "noded/runtime/launch.h"

namespace gantry::runtime {

inline constexpr const char* kLaunchFile = "launch.msgpack";
inline constexpr const char* kRunningFile = "running.msgpack";
inline constexpr const char* kExitFile = "exit.msgpack";
inline constexpr const char* kLockFile = "shim.lock";
inline constexpr const char* kNoticeFile = "notice";
inline constexpr const char* kOomFile = "steps.oom";
inline constexpr const char* kHostsFile = "hosts";
inline constexpr const char* kResolverFile = "resolv.conf";  // bound at /etc/resolv.conf
inline constexpr const char* kAttachPrefix = "attach.";
inline constexpr const char* kTimeLimitFile = "time_limit";
inline constexpr const char* kStepNoticePrefix = "notice.";
inline constexpr const char* kSignalPrefix = "signal.";
inline constexpr const char* kRuntimeLog = "runtime.log";
inline constexpr const char* kSetupFile = "setup.msgpack";
// The files of a system call filter: binary, for crun, and in OCI form for runc.
struct FilterFiles {
  const char *bpf, *base64, *json;
};
inline constexpr FilterFiles kFilter{"seccomp.bpf", "seccomp.base64", "seccomp.json"};
inline constexpr FilterFiles kHardenedFilter{"hardened.bpf", "hardened.base64", "hardened.json"};
constexpr const FilterFiles& filter_of(Sandbox level) {
  return level == Sandbox::hardened ? kHardenedFilter : kFilter;
}

// noded sends it to a step's shim: look for attachments and the time limit; and to the shim of a
// sandbox with a kernel of its own: look for signals. A shim that is not ready for the signal
// ignores it, and looks when it is ready.
inline constexpr int kAttachSignal = SIGURG;

inline std::string job_name(const AttemptKey& key) {
  return std::to_string(key.job.value()) + "." + std::to_string(key.attempt.value());
}
std::optional<AttemptKey> parse_job_name(std::string_view name);

inline std::string jobs_dir(const std::string& state_dir) {
  return state_dir + "/jobs";
}
// Forgotten attempts whose shim has not ended yet; the directory is emptied when noded starts.
inline std::string gone_dir(const std::string& state_dir) {
  return state_dir + "/gone";
}
inline std::string job_dir(const std::string& state_dir, const AttemptKey& key) {
  return jobs_dir(state_dir) + "/" + job_name(key);
}
inline std::string step_dir(const std::string& state_dir, const AttemptKey& key, StepId step) {
  return job_dir(state_dir, key) + "/steps/" + std::to_string(step.value());
}
inline std::string job_cgroup(const AttemptKey& key) {
  return "job_" + job_name(key);
}
inline std::string step_cgroup(const AttemptKey& key, StepId step) {
  return job_cgroup(key) + "/step_" + std::to_string(step.value());
}
// The cgroup of the container's own processes. runc insists on a directory that it makes itself.
inline std::string container_cgroup(const NodeSetup& setup, const AttemptKey& key) {
  return setup.runtime == RuntimeKind::runc ? job_cgroup(key) + "/c0" : job_cgroup(key);
}

// A job's own directory on the node's scratch disk.
inline std::string scratch_path(const NodeSetup& setup, const AttemptKey& key) {
  return setup.scratch_dir + "/gantry-" + setup.node + "-" + job_name(key);
}

Instant wall_clock();

// How long the machine has been up, by clocks that nobody can set: the time awake, and the time
// asleep.
struct Uptime {
  Duration awake{};
  Duration asleep{};
};
Uptime uptime();
// A clock for this process's timeouts. The value is no date: it counts from the machine's boot.
inline Instant timer_clock() {
  return Instant{uptime().awake.us};
}

// The file `contact` of the state directory: when the controller is known to have last received a
// message of this node, and the time of silence after which the controller may assume that every
// job here has ended. The file exists only with lost_node_policy fence. noded writes it at each
// answer to a heartbeat, and every shim reads it: a job must end after that silence even if its
// noded does not run.
//
// One line of three numbers, in microseconds: the contact on noded's clock, the same moment on
// CLOCK_BOOTTIME (which nobody can set, and which continues while the machine sleeps), fence_after.

inline constexpr const char* kContactFile = "contact";

struct Contact {
  Instant at{};
  Duration boot{};  // since the machine was booted
  Duration fence_after{};
};

std::string contact_text(const Contact& contact);
std::optional<Contact> parse_contact(std::string_view text);
Duration since_boot();

// When something began to run, by three clocks: the wall clock, for people; and how long the
// machine had been awake and asleep. The awake clock measures the run time, because nobody can set
// it and it stands still while the machine sleeps.
struct Beginning {
  Instant at{};
  Uptime uptime;

  static Beginning now() { return {wall_clock(), runtime::uptime()}; }
  [[nodiscard]] Duration ran() const {
    return std::max(Duration{}, runtime::uptime().awake - uptime.awake);
  }
  void into(RunningRecord& record) const {
    record.started = at;
    record.awake = uptime.awake;
    record.asleep = uptime.asleep;
  }
  // Call it at the end of the run: it sets the start time and the run time.
  void into(ExitRecord& record) const {
    record.started = at;
    record.ran = ran();
  }
};

}  // namespace gantry::runtime
