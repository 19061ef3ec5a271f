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
  std::vector<DependencyStatus> dependencies;  // of the spec's dependencies, as they stand
  std::optional<Instant> not_before;
  std::vector<Span> corr_met, corr_never;  // state of aftercorr, task by task
  std::int32_t class_priority = 0;     // value of the tenant's own class that it names; 0 = none
  std::vector<PartitionId> queues{};   // if it named several: those that take it
  std::vector<std::string> windows{};  // likewise of reservations
  GANTRY_EVENT(20, "job_submitted") {
    v(1, "job", s.job);
    v(2, "partition", s.partition);
    v(3, "time_limit", s.time_limit);
    v(4, "hold", s.hold);
    v(5, "dependencies", s.dependencies);
    v(6, "not_before", s.not_before);
    v(7, "corr_met", s.corr_met);
    v(8, "corr_never", s.corr_never);
    v(9, "class_priority", s.class_priority);
    v(10, "queues", s.queues);
    v(11, "windows", s.windows);
  }
};

struct JobHeld {
  JobId job{};
  Hold hold = Hold::user;
  std::string cause;
  GANTRY_EVENT(21, "job_held") {
    v(1, "job", s.job);
    v(2, "hold", s.hold);
    v(3, "cause", s.cause);
  }
};

struct JobReleased {  // ends hold and back-off
  JobId job{};
  GANTRY_EVENT(22, "job_released") { v(1, "job", s.job); }
};

struct JobUpdated {  // members that are set have changed
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
  std::optional<std::vector<PartitionId>> queues{};   // empty: it stays in one from now on
  std::optional<std::vector<std::string>> windows{};  // likewise of reservations
  GANTRY_EVENT(23, "job_updated") {
    v(1, "job", s.job);
    v(2, "partition", s.partition);
    v(3, "time_limit", s.time_limit);
    v(4, "unlimited_time", s.unlimited_time);
    v(5, "nice", s.nice);
    v(6, "priority", s.priority);
    v(7, "name", s.name);
    v(8, "comment", s.comment);
    v(9, "begin", s.begin);
    v(10, "max_running", s.max_running);
    v(11, "account", s.account);
    v(12, "reservation", s.reservation);
    v(13, "shape", s.shape);
    v(14, "requeue", s.requeue);
    v(15, "site_factor", s.site_factor);
    v(16, "queues", s.queues);
    v(17, "windows", s.windows);
  }
};

struct DependencySettled {
  JobId job{};
  std::uint32_t index = 0;  // index in the job's list
  bool met = false;         // false: it will never be met
  std::optional<Instant> not_before;
  GANTRY_EVENT(24, "dependency_settled") {
    v(1, "job", s.job);
    v(2, "index", s.index);
    v(3, "met", s.met);
    v(4, "not_before", s.not_before);
  }
};

struct TaskDependencySettled {  // for aftercorr: some tasks
  JobId array{};
  std::vector<Span> ordinals;
  bool met = false;
  GANTRY_EVENT(25, "task_dependency_settled") {
    v(1, "array", s.array);
    v(2, "ordinals", s.ordinals);
    v(3, "met", s.met);
  }
};

struct TasksCancelled {  // tasks that were pending
  JobId array{};
  std::vector<Span> ordinals;
  Outcome outcome = Outcome::cancelled;
  std::string cause;
  GANTRY_EVENT(26, "tasks_cancelled") {
    v(1, "array", s.array);
    v(2, "ordinals", s.ordinals);
    v(3, "outcome", s.outcome);
    v(4, "cause", s.cause);
  }
};

struct TaskSplit {  // a pending task becomes an element, a job of its own
  JobId array{};
  std::uint32_t ordinal = 0;
  JobId job{};
  GANTRY_EVENT(27, "task_split") {
    v(1, "array", s.array);
    v(2, "ordinal", s.ordinal);
    v(3, "job", s.job);
  }
};

// A job that has ended waits once more, under its id. What its earlier runs cost stays charged.
struct JobRevived {
  JobId job{};
  Hold hold = Hold::none;
  std::string cause;
  GANTRY_EVENT(79, "job_revived") {
    v(1, "job", s.job);
    v(2, "hold", s.hold);
    v(3, "cause", s.cause);
  }
};

// Something was noted of a job, for its history; members that are set.
struct JobNoted {
  JobId job{};
  std::optional<std::string> comment;
  std::optional<ExitStatus> derived_exit;
  std::optional<std::string> admin_comment, system_comment;
  GANTRY_EVENT(96, "job_noted") {
    v(1, "job", s.job);
    v(2, "comment", s.comment);
    v(3, "derived_exit", s.derived_exit);
    v(4, "admin_comment", s.admin_comment);
    v(5, "system_comment", s.system_comment);
  }
};

// A row of the history in the place of the one with this end and job, which State knows no more.
struct HistoryReplaced {
  Instant end{};
  JobId job{};
  std::optional<JobId> array;
  Bytes row;  // an encoded proto::HistoryRow
  GANTRY_EVENT(97, "history_replaced") {
    v(1, "end", s.end);
    v(2, "job", s.job);
    v(3, "array", s.array);
    v(4, "row", s.row);
  }
};

}  // namespace gantry::core::event
