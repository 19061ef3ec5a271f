// Changing jobs: cancel, hold, release, requeue, update. Client to ctld, and the answer.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/job/job_spec.h"
#include "common/job/job_state.h"
#include "common/proto/job_ref.h"
#include "common/proto/session.h"

namespace gantry::proto {

// Who gets a signal.
enum class SignalScope : std::uint8_t {
  steps = 0,        // every process of the steps, not the batch shell
  batch_shell = 1,  // the batch shell only
  full = 2,         // both
};
constexpr auto enum_names(SignalScope) {
  using enum SignalScope;
  return std::array<std::pair<SignalScope, std::string_view>, 3>{
      {{steps, "steps"}, {batch_shell, "batch"}, {full, "full"}}};
}

// Ends jobs (signal not set), or sends a signal to running ones. For a user who is no operator the
// filter is reduced to the user's own jobs; naming another user's job is refused. Ended and unknown
// jobs are no error: see `not_active`.
struct CancelJobs {
  JobFilter filter;  // at least one condition, or all_mine
  bool all_mine = false;
  std::optional<std::int32_t> signal;
  SignalScope scope = SignalScope::steps;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "filter", s.filter);
    v(2, "all_mine", s.all_mine);
    v(3, "signal", s.signal);
    v(4, "scope", s.scope);
  }
};

// The answer to cancel, hold, release, requeue and update: what was done, and for each refused job
// why not.
struct JobsDone {
  std::uint64_t changed = 0;       // jobs and array tasks
  std::vector<JobRef> not_active;  // unknown or ended
  struct Refused {
    JobRef job;
    ErrorReply error;
    template <class Self, class V>
    static void fields(Self& s, V&& v) {
      v(1, "job", s.job);
      v(2, "error", s.error);
    }
  };
  std::vector<Refused> refused;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "changed", s.changed);
    v(2, "not_active", s.not_active);
    v(3, "refused", s.refused);
  }
};

// Says that the running jobs have saved their work, so that preempting them now would lose little.
// A job may say so of itself.
struct CheckpointJobs {
  std::vector<JobRef> jobs;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "jobs", s.jobs);
  }
};

struct HoldJobs {
  std::vector<JobRef> jobs;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "jobs", s.jobs);
  }
};

struct ReleaseJobs {
  std::vector<JobRef> jobs;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "jobs", s.jobs);
  }
};

// Suspends running jobs, or resumes them. They keep what they hold; meanwhile their time limit,
// cost and fair share stand still. Only operators may do this.
struct SuspendJobs {
  std::vector<JobRef> jobs;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "jobs", s.jobs);
  }
};

struct ResumeJobs {
  std::vector<JobRef> jobs;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "jobs", s.jobs);
  }
};

// Puts waiting jobs before the other jobs of their user with the same partition, account and
// priority class, in this order. The others lose the priority that these gain (by nice). Users may
// do this with their own jobs.
struct TopJobs {
  std::vector<JobRef> jobs;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "jobs", s.jobs);
  }
};

// Sends a line to the standard error of running jobs. Their owners may do this, and everybody who
// may cancel them.
struct NotifyJobs {
  static constexpr std::size_t kMaxText = 1024;  // bytes, printable
  std::vector<JobRef> jobs;
  std::string text;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "jobs", s.jobs);
    v(2, "text", s.text);
  }
};

// Sends a signal to the processes of one running step, on all its nodes. Answered by Ok.
struct SignalStep {
  JobRef job;  // a job, or one element of an array
  StepId step{};
  std::int32_t signal = 0;  // 1..64
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "job", s.job);
    v(2, "step", s.step);
    v(3, "signal", s.signal);
  }
};

// Changes the time limit of a running step, or of all that run in the job; it counts from the
// beginning of the step. Answered by Ok.
struct UpdateStep {
  JobRef job;  // a job, or one element of an array
  std::optional<StepId> step{};
  Duration time_limit{};  // 0 = none but the job's
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "job", s.job);
    v(2, "step", s.step);
    v(3, "time_limit", s.time_limit);
  }
};

struct RequeueJobs {
  std::vector<JobRef> jobs;
  bool hold = false;
  bool special_exit = false;  // with hold: it is shown in Slurm's state SPECIAL_EXIT until then
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "jobs", s.jobs);
    v(2, "hold", s.hold);
    v(3, "special_exit", s.special_exit);
  }
};

// Changes the members that are set. Once the job runs, only an admin may raise its time limit.
// `reshape` changes what a queued job asks for; a running job that names fewer of its nodes, by
// min_nodes or required_nodes, gives back the others.
struct Reshape {
  std::optional<std::uint32_t> min_nodes, max_nodes;  // both, or neither
  std::optional<std::uint32_t> tasks, cpus_per_task;
  std::optional<std::int64_t> memory_per_node, memory_per_cpu;  // bytes; one replaces the other
  std::optional<std::string> constraint;                        // "" = removes it
  std::optional<std::vector<std::string>> required_nodes, excluded_nodes;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "min_nodes", s.min_nodes);
    v(2, "max_nodes", s.max_nodes);
    v(3, "tasks", s.tasks);
    v(4, "cpus_per_task", s.cpus_per_task);
    v(5, "memory_per_node", s.memory_per_node);
    v(6, "memory_per_cpu", s.memory_per_cpu);
    v(7, "constraint", s.constraint);
    v(8, "required_nodes", s.required_nodes);
    v(9, "excluded_nodes", s.excluded_nodes);
  }
};

struct UpdateJob {
  JobRef job;
  std::optional<Duration> time_limit;
  std::optional<std::int32_t> nice;
  std::optional<std::uint32_t> priority;  // admin
  std::optional<std::string> partition;   // queued only
  std::optional<std::string> name;
  std::optional<std::string> comment;
  std::optional<Instant> begin;  // queued only
  std::optional<std::uint32_t> array_max_running;
  std::optional<std::string> account;      // queued only
  std::optional<std::string> reservation;  // queued only; "" = removes it
  std::optional<Reshape> reshape;
  std::optional<bool> requeue;                // queued only; after a node failed or a preemption
  std::optional<std::int32_t> site_factor{};  // admin; added to the priority
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "job", s.job);
    v(2, "time_limit", s.time_limit);
    v(3, "nice", s.nice);
    v(4, "priority", s.priority);
    v(5, "partition", s.partition);
    v(6, "name", s.name);
    v(7, "comment", s.comment);
    v(8, "begin", s.begin);
    v(9, "array_max_running", s.array_max_running);
    v(10, "account", s.account);
    v(11, "reservation", s.reservation);
    v(12, "reshape", s.reshape);
    v(13, "requeue", s.requeue);
    v(14, "site_factor", s.site_factor);
  }
};

}  // namespace gantry::proto
