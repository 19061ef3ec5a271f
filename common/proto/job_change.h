// Changing jobs: cancel, hold, release, requeue, update. Client to ctld, and the answer.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/job/job_spec.h"
#include "common/job/job_state.h"
#include "common/proto/job_ref.h"
#include "common/proto/session.h"

namespace gantry::proto {

// Which processes get a signal.
enum class SignalScope : std::uint8_t {
  steps = 0,        // every process of the steps, not the batch shell
  batch_shell = 1,  // the batch shell only
  full = 2,         // both
};
GANTRY_NAMES(SignalScope, {steps, "steps"}, {batch_shell, "batch"}, {full, "full"})

// Ends jobs (signal not set), or sends a signal to running ones. For a user who is no operator the
// filter is reduced to the user's own jobs; naming another user's job is refused. Ended and unknown
// jobs are no error: see `not_active`.
struct CancelJobs {
  JobFilter filter;  // at least one condition, or all_mine
  bool all_mine = false;
  std::optional<std::int32_t> signal;
  SignalScope scope = SignalScope::steps;
  GANTRY_FIELDS(FIELD(1, filter), FIELD(2, all_mine), FIELD(3, signal), FIELD(4, scope))
};

// The answer to cancel, hold, release, requeue and update: what was done, and for each refused job
// why not.
struct JobsDone {
  std::uint64_t changed = 0;       // jobs and array tasks
  std::vector<JobRef> not_active;  // unknown or ended
  struct Refused {
    JobRef job;
    ErrorReply error;
    GANTRY_FIELDS(FIELD(1, job), FIELD(2, error))
  };
  std::vector<Refused> refused;
  GANTRY_FIELDS(FIELD(1, changed), FIELD(2, not_active), FIELD(3, refused))
};

// Tells that the running jobs have saved their work, so that preempting them now would lose little.
// A job may send it for itself.
struct CheckpointJobs {
  std::vector<JobRef> jobs;
  GANTRY_FIELDS(FIELD(1, jobs))
};

struct HoldJobs {
  std::vector<JobRef> jobs;
  GANTRY_FIELDS(FIELD(1, jobs))
};

struct ReleaseJobs {
  std::vector<JobRef> jobs;
  GANTRY_FIELDS(FIELD(1, jobs))
};

// Suspends running jobs, or resumes them. They keep what they hold; meanwhile their time limit,
// cost and fair share stand still. Only operators may do this.
struct SuspendJobs {
  std::vector<JobRef> jobs;
  GANTRY_FIELDS(FIELD(1, jobs))
};

struct ResumeJobs {
  std::vector<JobRef> jobs;
  GANTRY_FIELDS(FIELD(1, jobs))
};

// Puts waiting jobs before the other jobs of their user with the same partition, account and
// priority class, in this order. The others lose the priority that these gain (by nice). Users may
// do this with their own jobs.
struct TopJobs {
  std::vector<JobRef> jobs;
  GANTRY_FIELDS(FIELD(1, jobs))
};

// Sends a line to the standard error of running jobs. Their owners may do this, and everybody who
// may cancel them.
struct NotifyJobs {
  static constexpr std::size_t kMaxText = 1024;  // bytes, printable
  std::vector<JobRef> jobs;
  std::string text;
  GANTRY_FIELDS(FIELD(1, jobs), FIELD(2, text))
};

// Sends a signal to the processes of one running step, on all its nodes. Answered by Ok.
struct SignalStep {
  JobRef job;  // a job, or one element of an array
  StepId step{};
  std::int32_t signal = 0;  // 1..64
  GANTRY_FIELDS(FIELD(1, job), FIELD(2, step), FIELD(3, signal))
};

// Changes the time limit of a running step, or of all that run in the job; it counts from the
// beginning of the step. Answered by Ok.
struct UpdateStep {
  JobRef job;  // a job, or one element of an array
  std::optional<StepId> step{};
  Duration time_limit{};  // 0 = none but the job's
  GANTRY_FIELDS(FIELD(1, job), FIELD(2, step), FIELD(3, time_limit))
};

struct RequeueJobs {
  std::vector<JobRef> jobs;
  bool hold = false;
  bool special_exit = false;  // with hold: shown as Slurm's state SPECIAL_EXIT until then
  GANTRY_FIELDS(FIELD(1, jobs), FIELD(2, hold), FIELD(3, special_exit))
};

// Changes the members that are set. Once the job runs, only an admin may raise its time limit.
// `reshape` changes what a queued job asks for; a running job that names fewer of its nodes, by
// min_nodes or required_nodes, releases the others.
struct Reshape {
  std::optional<std::uint32_t> min_nodes, max_nodes;  // both, or neither
  std::optional<std::uint32_t> tasks, cpus_per_task;
  std::optional<std::int64_t> memory_per_node, memory_per_cpu;  // bytes; one replaces the other
  std::optional<std::string> constraint;                        // "" = removes it
  std::optional<std::vector<std::string>> required_nodes, excluded_nodes;
  GANTRY_FIELDS(FIELD(1, min_nodes), FIELD(2, max_nodes), FIELD(3, tasks), FIELD(4, cpus_per_task),
                FIELD(5, memory_per_node), FIELD(6, memory_per_cpu), FIELD(7, constraint),
                FIELD(8, required_nodes), FIELD(9, excluded_nodes))
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
  GANTRY_FIELDS(FIELD(1, job), FIELD(2, time_limit), FIELD(3, nice), FIELD(4, priority),
                FIELD(5, partition), FIELD(6, name), FIELD(7, comment), FIELD(8, begin),
                FIELD(9, array_max_running), FIELD(10, account), FIELD(11, reservation),
                FIELD(12, reshape), FIELD(13, requeue), FIELD(14, site_factor))
};

}  // namespace gantry::proto
