// What Runtime knows; included only by runtime*.cc and recover.cc.
//
//   runtime_open.cc     setting up: cgroups, filters, self-test, setup.msgpack
//   runtime.cc          starting shims, and events
//   runtime_signals.cc  signals, notices, kills
//   recover.cc          what an earlier noded left
#pragma once

#include <sys/types.h>

#include <map>
#include <set>
#include <string>
#include <utility>

#include "noded/runtime/runtime.h"
#include "noded/runtime/shim_process.h"
#include "noded/runtime/shim_template.h"

namespace gantry::runtime {

struct OneStep {
  ShimProcess shim;
};

// A shim in its last moments: to be reaped, and then its directory removed. Not before: a removal
// while the kernel takes the shim's mounts apart costs a millisecond of waiting for dentries.
struct Leaving {
  ShimProcess shim;
  std::string remove;
};

struct OneJob {
  ShimProcess shim;
  Owner owner;
  LaunchKind kind = LaunchKind::batch;
  bool said_held = false;
  bool said_running = false;
  std::optional<Duration> asleep_before{};  // how long the machine had slept when it began to run
  bool ended = false;                       // its ended event was given
  int kills = 0;                            // how often kill() was asked
  bool burying = false;                     // its shim is gone, what is left of it is being killed
  bool epilog_begun = false;
  ShimProcess epilog;  // in the shim's place
  std::map<StepId, OneStep> steps;
  std::size_t most_steps = 0;  // at once
  std::set<StepId> cancelled;  // by kill_step() before they were here; not to begin
};

// Each step has a shim, which is a process of root's in no cgroup of the job.
std::size_t most_steps(const LaunchRequest& request);

struct Runtime::State {
  RuntimeOptions options;
  NodeSetup setup;
  ProbeReport probe;
  std::string boot_id;
  bool rebooted = false;  // since the state directory was last used
  Fd epoll;
  Fd notes;  // datagrams of shims
  Fd timer;  // while something is being buried
  Fd log;    // stderr of shims
  ShimTemplate shims;
  std::map<AttemptKey, OneJob> jobs;
  std::map<std::uint64_t, std::pair<AttemptKey, std::optional<StepId>>> watched;  // by epoll tag
  std::vector<Leaving> leaving;   // what is left to do when a shim has ended
  std::uint64_t next_tag = 16;    // below: the sources of our own
  std::uint64_t attachments = 0;  // their files' names

  Result<void> prepare();  // directories, cgroups, filters
  Result<void> choose_runtime();
  Result<void> open_sources();

  // What was at the state directory's path when this began.
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
  void look_at_step(const AttemptKey& key, OneJob& job, StepId step, bool gone,
                    std::vector<RuntimeEvent>& events);
  void bury(std::vector<RuntimeEvent>& events);
  void arm_timer();
  void let_go(ShimProcess shim, std::string remove = "");
  void reap_leaving();

  [[nodiscard]] std::string dir(const AttemptKey& key) const;
  [[nodiscard]] std::optional<ExitRecord> exit_record(const std::string& dir) const;
  [[nodiscard]] std::optional<RunningRecord> running_record(const AttemptKey& key) const;
  // Kills and removes what a lost shim left; false = something is still there.
  bool end_remains(const AttemptKey& key);
  // Runs the epilog that a lost shim owes; false = it still runs. Of a shim that was killed after
  // its epilog and before its record it runs twice.
  bool epilog_over(const AttemptKey& key, OneJob& job);
  ExitRecord lost_record(const AttemptKey& key) const;
  void remove_lost_scratch(const AttemptKey& key);
  RecoveredAttempt recover_job(const AttemptKey& key, LaunchRequest request);
  void recover_steps(const AttemptKey& key, OneJob& job);
  ExitRecord bury_now(const AttemptKey& key, OneJob& job);
};

inline constexpr std::uint64_t kNotesTag = 1;
inline constexpr std::uint64_t kTimerTag = 2;

}  // namespace gantry::runtime
