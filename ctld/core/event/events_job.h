// Events of jobs that wait; see events.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ctld/core/event/event_fields.h"
#include "ctld/core/state/job.h"

namespace gantry::core::event {

struct JobSubmitted {  // the job's spec is in the same commit, under the same id
  JobId job{};
  PartitionId partition{};
  std::optional<Duration> time_limit;
  Hold hold = Hold::none;
  std::vector<DependencyStatus> dependencies;  // the status of each of the spec's dependencies
  std::optional<Instant> not_before;
  std::vector<Span> corr_met,
      corr_never;  // for aftercorr: the tasks whose dependency is met, or never will be
  std::int32_t class_priority =
      0;  // value of the tenant's own priority class that the job names; 0 = none
  std::vector<PartitionId> queues{};   // if the job named several partitions: those that accept it
  std::vector<std::string> windows{};  // likewise for reservations
  GANTRY_EVENT(20, "job_submitted") {
    FIELD(1, job), FIELD(2, partition), FIELD(3, time_limit), FIELD(4, hold),
        FIELD(5, dependencies), FIELD(6, not_before), FIELD(7, corr_met), FIELD(8, corr_never),
        FIELD(9, class_priority), FIELD(10, queues), FIELD(11, windows);
  }
};

struct JobHeld {
  JobId job{};
  Hold hold = Hold::user;
  std::string cause;
  GANTRY_EVENT(21, "job_held") { FIELD(1, job), FIELD(2, hold), FIELD(3, cause); }
};

struct JobReleased {  // ends hold and back-off
  JobId job{};
  GANTRY_EVENT(22, "job_released") { FIELD(1, job); }
};

struct JobUpdated {  // only members that are set have changed
  JobId job{};
  std::optional<PartitionId> partition;
  std::optional<Duration> time_limit;
  bool unlimited_time = false;
  std::optional<std::int32_t> nice;
  std::optional<std::uint32_t> priority;
  std::optional<std::string> name;
  std::optional<std::string> comment;
  std::optional<Instant> begin;
  std::optional<std::uint32_t> max_running;
  std::optional<std::string> account;
  std::optional<std::string> reservation;
  std::optional<JobShape> shape;
  std::optional<bool> requeue;
  std::optional<std::int32_t> site_factor{};
  std::optional<std::vector<PartitionId>>
      queues{};  // empty: the job stays in one queue from now on
  std::optional<std::vector<std::string>> windows{};  // likewise for reservations
  GANTRY_EVENT(23, "job_updated") {
    FIELD(1, job), FIELD(2, partition), FIELD(3, time_limit), FIELD(4, unlimited_time),
        FIELD(5, nice), FIELD(6, priority), FIELD(7, name), FIELD(8, comment), FIELD(9, begin),
        FIELD(10, max_running), FIELD(11, account), FIELD(12, reservation), FIELD(13, shape),
        FIELD(14, requeue), FIELD(15, site_factor), FIELD(16, queues), FIELD(17, windows);
  }
};

struct DependencySettled {
  JobId job{};
  std::uint32_t index = 0;  // index in the job's list
  bool met = false;         // false: the dependency will never be met
  std::optional<Instant> not_before;
  GANTRY_EVENT(24, "dependency_settled") {
    FIELD(1, job), FIELD(2, index), FIELD(3, met), FIELD(4, not_before);
  }
};

struct TaskDependencySettled {  // for aftercorr: some tasks only
  JobId array{};
  std::vector<Span> ordinals;
  bool met = false;
  GANTRY_EVENT(25, "task_dependency_settled") {
    FIELD(1, array), FIELD(2, ordinals), FIELD(3, met);
  }
};

struct TasksCancelled {  // tasks that were pending are cancelled
  JobId array{};
  std::vector<Span> ordinals;
  Outcome outcome = Outcome::cancelled;
  std::string cause;
  GANTRY_EVENT(26, "tasks_cancelled") {
    FIELD(1, array), FIELD(2, ordinals), FIELD(3, outcome), FIELD(4, cause);
  }
};

struct TaskSplit {  // a pending task becomes an element, a job of its own
  JobId array{};
  std::uint32_t ordinal = 0;
  JobId job{};
  GANTRY_EVENT(27, "task_split") { FIELD(1, array), FIELD(2, ordinal), FIELD(3, job); }
};

// A job that has ended is queued again under its id. What its earlier runs cost stays charged.
struct JobRevived {
  JobId job{};
  Hold hold = Hold::none;
  std::string cause;
  GANTRY_EVENT(79, "job_revived") { FIELD(1, job), FIELD(2, hold), FIELD(3, cause); }
};

// A note about a job for its history; only members that are set change.
struct JobNoted {
  JobId job{};
  std::optional<std::string> comment;
  std::optional<ExitStatus> derived_exit;
  std::optional<std::string> admin_comment, system_comment;
  GANTRY_EVENT(96, "job_noted") {
    FIELD(1, job), FIELD(2, comment), FIELD(3, derived_exit), FIELD(4, admin_comment),
        FIELD(5, system_comment);
  }
};

// Replaces the row of the history with this end and job id; State no longer has that job.
struct HistoryReplaced {
  Instant end{};
  JobId job{};
  std::optional<JobId> array;
  Bytes row;  // an encoded proto::HistoryRow
  GANTRY_EVENT(97, "history_replaced") {
    FIELD(1, end), FIELD(2, job), FIELD(3, array), FIELD(4, row);
  }
};

}  // namespace gantry::core::event
