// Runs jobs and steps on this machine, for noded.
//
// Every call is quick (files, signals, one spawn); none waits for a container. Results come from
// poll(), which the caller calls when fd() is readable. A restart of noded loses nothing: open()
// and recover() read the state directory, and the shims are not affected.
//
//   open() -> self-test of the configured OCI runtimes, in order; the first that works is used
//   begin() -> [held ->] running -> ended -> forget()
//
// An attempt whose shim was killed ends as ExitCause::shim_lost, after all its processes were
// killed.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/proto/job_change.h"
#include "common/result.h"
#include "config/config.h"
#include "noded/machine/cgroup.h"
#include "noded/machine/discover.h"
#include "noded/runtime/launch.h"
#include "noded/runtime/probe.h"

namespace gantry::runtime {

struct RuntimeOptions {
  std::string node;
  std::string cluster;
  NodedConfig config;
  std::string bin_dir;                       // where gantry-shim and gantry-init are
  std::vector<std::uint32_t> device_majors;  // majors of devices that only some jobs may open
  std::string scratch_dir;                   // "" = none
  bool self_test = true;                     // tests of the runtime itself may skip it
};

enum class EventKind : std::uint8_t { held, running, ended, step_ended };

struct RuntimeEvent {
  EventKind kind = EventKind::running;
  AttemptKey key;
  StepId step{};      // step_ended
  Instant at{};       // running
  ExitRecord record;  // ended, step_ended
};

struct RecoveredAttempt {
  enum class Stage : std::uint8_t { never_started, preparing, held, running, ended };
  AttemptKey key;
  Stage stage = Stage::never_started;
  LaunchRequest request;
  std::optional<Instant> started;
  ExitRecord record;    // ended
  bool frozen = false;  // running
};

// What observers need to know about a running attempt.
struct RunningJob {
  AttemptKey key;
  std::string cgroup;               // below the node's directory
  std::vector<std::uint16_t> cpus;  // sorted; empty = not pinned
  std::int64_t memory = 0;          // limit; 0 = none
  std::string network_sys;          // a sysfs that shows its network namespace; "" = none
  std::uint64_t network_rate = 0;   // bits per second each way; 0 = no limit
  std::uint64_t io_rate = 0;        // limit in bytes per second for each disk; 0 = none
  std::string tenant, user;         // tenant ("" = none) and user
};

class Runtime {
 public:
  // Fails if no configured runtime works; the error has the reason for each.
  static Result<std::unique_ptr<Runtime>> open(RuntimeOptions options);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // Why nothing may start here: the state directory is gone, was replaced or is not writable; "" if
  // all is well. Makes two calls of stat().
  [[nodiscard]] std::string trouble() const;
  // For heartbeats: the running attempts during which the machine has slept, and for how long; and
  // what running attempts and their steps have used so far.
  [[nodiscard]] std::vector<proto::AttemptUsage> usage() const;
  [[nodiscard]] std::vector<proto::AttemptSleep> asleep() const;
  [[nodiscard]] std::vector<RunningJob> running() const;
  [[nodiscard]] const CgroupLayout& cgroups() const;
  [[nodiscard]] const ProbeReport& probe() const;
  [[nodiscard]] int fd() const;  // readable: call poll()
  std::vector<RuntimeEvent> poll();

  // Call this once, before anything else. It ends attempts that have lost their shim, and removes
  // cgroups that belong to no attempt.
  std::vector<RecoveredAttempt> recover();

  // Writes the launch record and starts the shim. If it fails, nothing of the attempt ran or will
  // run.
  Result<void> begin(const LaunchRequest& request);
  Result<void> resume(const AttemptKey& key);   // Stage::never_started only
  Result<void> release(const AttemptKey& key);  // a held attempt runs now
  Result<void> signal(const AttemptKey& key, int number, proto::SignalScope scope);
  // Stops every process where it is, or continues all.
  Result<void> freeze(const AttemptKey& key, bool frozen);
  // Sends SIGKILL to all processes, or stops the preparation.
  Result<void> kill(const AttemptKey& key);
  Result<void> notice(const AttemptKey& key,
                      const std::string& text);  // a line for the job's standard error
  void forget(const AttemptKey& key);            // removes its directory

  // Steps run in the container of a running attempt on this node.
  Result<void> begin_step(const StepRequest& request);
  Result<void> signal_step(const AttemptKey& key, StepId step, int number);
  // The step's own time limit, counted from its start; 0 = none.
  Result<void> limit_step(const AttemptKey& key, StepId step, Duration time_limit);
  Result<void> kill_step(const AttemptKey& key, StepId step);
  Result<void> attach_step(
      const StepAttachment& attachment);  // error not_found: no task of it runs here

  [[nodiscard]] Result<Usage> usage(const AttemptKey& key) const;
  [[nodiscard]] std::optional<Owner> owner_of(const AttemptKey& key) const;
  [[nodiscard]] bool has_network(const AttemptKey& key) const;  // a network of its own
  // Host path of the directory that the job sees, read-only, as /run/gantry. Exists from begin().
  [[nodiscard]] std::string run_dir(const AttemptKey& key) const;

 private:
  struct State;
  explicit Runtime(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gantry::runtime
