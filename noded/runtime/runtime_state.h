// The members of Runtime; included only by runtime*.cc.
//
//   runtime_open.cc     setting up: cgroups, filters, self-test, setup.msgpack; what an earlier
//                       noded left
//   runtime.cc          starting shims, and events
//   runtime_signals.cc  signals, notices, kills
#pragma once

#include <sys/types.h>

#include <map>
#include <set>
#include <string>
#include <utility>

#include "noded/runtime/runtime.h"
#include "noded/runtime/shim_process.h"

namespace gantry::runtime {

struct OneStep {
  ShimProcess shim;
  bool running = false;    // its tasks are known to have started
  std::vector<int> early;  // signals that came before; its tasks get them when they run
};

// A shim that is about to end. After its end it is reaped, and then its directory is removed.
// Removing the directory earlier, while the kernel removes the shim's mounts, would wait a
// millisecond.
struct Leaving {
  ShimProcess shim;
  std::string remove;
};

struct OneJob {
  ShimProcess shim;
  Owner owner;
  bool has_network = false;  // a network of its own
  RunningJob facts;
  LaunchKind kind = LaunchKind::batch;
  bool said_held = false;
  bool said_running = false;
  std::optional<Duration> asleep_before{};  // how long the machine had slept when it began to run
  bool ended = false;                       // the caller was given its ended event
  int kills = 0;                            // number of calls of kill()
  bool burying = false;  // its shim is gone, and its remaining processes are being killed
  bool epilog_begun = false;
  ShimProcess epilog;  // runs instead of the lost shim's epilog
  std::map<StepId, OneStep> steps;
  std::size_t most_steps = 0;  // most steps at the same time
  // Steps that kill_step() cancelled before their launch; they must not begin.
  std::set<StepId> cancelled;
  std::map<StepId, std::vector<int>> early;  // signals for steps that are not launched yet
  std::map<StepId, Duration>
      early_limits;  // changed time limits of steps that are not launched yet
};

RunningJob facts_of(const LaunchRequest& request);

// How many steps may run at once. Limited, because each step has a shim, which runs as root outside
// the job's cgroup.
std::size_t most_steps(const LaunchRequest& request);

struct Runtime::State {
  RuntimeOptions options;
  NodeSetup setup;
  ProbeReport probe;
  std::string boot_id;
  bool rebooted = false;  // the machine was rebooted since the state directory was last used
  Fd epoll;
  Fd notes;  // datagrams from shims
  Fd timer;  // active while processes of a lost shim are being ended
  Fd log;    // stderr of shims
  ShimTemplate shims;
  std::map<AttemptKey, OneJob> jobs;
  std::map<std::uint64_t, std::pair<AttemptKey, std::optional<StepId>>> watched;  // by epoll tag
  std::vector<Leaving> leaving;   // shims about to end, and what to do then
  std::uint64_t next_tag = 16;    // smaller tags are noded's own sources
  std::uint64_t attachments = 0;  // number of attachments, used in their files' names

  Result<void> prepare();  // directories, cgroups, filters
  Result<void> choose_runtime();
  void find_kernels();
  Result<void> open_sources();

  // The identity of the state directory when this Runtime was opened.
  struct Home {
    dev_t device = 0;
    ino_t inode = 0;
    ino_t jobs_inode = 0;
  };
  Home home;
  void remember_home();
  [[nodiscard]] std::string trouble() const;

  void watch(const AttemptKey& key, std::optional<StepId> step, const ShimProcess& shim);
  Result<void> start_job(const AttemptKey& key, OneJob job);
  void take_notes(std::vector<RuntimeEvent>& events);
  void look(const AttemptKey& key, OneJob& job, std::vector<RuntimeEvent>& events);
  void shim_exited(const AttemptKey& key, std::optional<StepId> step,
                   std::vector<RuntimeEvent>& events);
  void tell_step(const AttemptKey& key, StepId step, const OneStep& one, const std::string& text);
  void signal_tasks(const AttemptKey& key, StepId step, int number) const;
  void signal_all(const AttemptKey& key, int number, int spared) const;
  [[nodiscard]] std::vector<StepId> steps_on_disk(const AttemptKey& key) const;
  void step_runs(const AttemptKey& key, OneJob& job, StepId step);
  // Keeps the signal for a step whose tasks do not run yet; returns false if they run, or have
  // ended.
  bool keep_if_early(const AttemptKey& key, StepId step, OneStep& one, int number);
  void look_at_step(const AttemptKey& key, OneJob& job, StepId step, bool gone,
                    std::vector<RuntimeEvent>& events);
  void bury(std::vector<RuntimeEvent>& events);
  void arm_timer();
  void let_go(ShimProcess shim, std::string remove = "");
  void reap_leaving();

  [[nodiscard]] std::string dir(const AttemptKey& key) const;
  [[nodiscard]] std::optional<ExitRecord> exit_record(const std::string& dir) const;
  [[nodiscard]] std::optional<RunningRecord> running_record(const AttemptKey& key) const;
  // Kills and removes what a lost shim left. Returns false if something is still there.
  bool end_remains(const AttemptKey& key);
  // Runs the epilog that a lost shim did not run. Returns false while it runs. If the shim was
  // killed between its epilog and its record, the epilog runs twice.
  bool epilog_over(const AttemptKey& key, OneJob& job);
  ExitRecord lost_record(const AttemptKey& key) const;
  void remove_lost_scratch(const AttemptKey& key);
  RecoveredAttempt recover_job(const AttemptKey& key, LaunchRequest request);
  void recover_steps(const AttemptKey& key, OneJob& job);
  ExitRecord bury_now(const AttemptKey& key, OneJob& job);
};

inline constexpr std::uint64_t kNotesTag = 1;
inline constexpr std::uint64_t kTimerTag = 2;

// Writes a time limit that was set before the step's launch into its directory, where its shim
// reads it.
Result<void> write_early_limit(int step_dir, OneJob& job, StepId step);

}  // namespace gantry::runtime
