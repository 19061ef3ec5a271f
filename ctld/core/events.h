// Events: the facts that make up State, in the order in which they became true. The journal is a
// list of these; apply() is the only reader. Kinds and field numbers are permanent, and
// tests/golden/events.txt lists them, so a change shows in review.
//
// An event says what was decided, with every number that the decision needed: apply() reads no
// configuration and no clock.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/proto/node_report.h"
#include "ctld/core/job.h"
#include "ctld/core/node.h"

namespace gantry::core::event {

// clang-format off
#define GANTRY_EVENT(kind, name)               \
  static constexpr int kKind = kind;           \
  static constexpr std::string_view kName = name; \
  template <class Self, class V>               \
  static void fields([[maybe_unused]] Self& s, [[maybe_unused]] V&& v)
// clang-format on

// ---- the controller and its cluster

struct ControllerStarted {
  Epoch epoch{};
  GANTRY_EVENT(1, "controller_started") { v(1, "epoch", s.epoch); }
};

struct NodeDeclared {  // first time this name is in the configuration
  NodeId node{};
  std::string name;
  GANTRY_EVENT(2, "node_declared") { v(1, "node", s.node); v(2, "name", s.name); }
};

struct PartitionDeclared {
  PartitionId partition{};
  std::string name;
  GANTRY_EVENT(3, "partition_declared") { v(1, "partition", s.partition); v(2, "name", s.name); }
};

struct NodeRegistered {  // with facts other than the known ones
  NodeId node{};
  NodeFacts facts;
  GANTRY_EVENT(4, "node_registered") { v(1, "node", s.node); v(2, "facts", s.facts); }
};

struct NodeHealthChanged {
  NodeId node{};
  NodeHealth health = NodeHealth::down;
  std::string reason;
  GANTRY_EVENT(5, "node_health") {
    v(1, "node", s.node); v(2, "health", s.health); v(3, "reason", s.reason);
  }
};

struct NodeIntentChanged {
  NodeId node{};
  NodeIntent intent = NodeIntent::open;
  std::string reason;
  std::string by;
  GANTRY_EVENT(6, "node_intent") {
    v(1, "node", s.node); v(2, "intent", s.intent); v(3, "reason", s.reason); v(4, "by", s.by);
  }
};

struct NodeEnrolled {
  NodeId node{};
  std::string public_key;
  GANTRY_EVENT(7, "node_enrolled") { v(1, "node", s.node); v(2, "public_key", s.public_key); }
};

struct PartitionUpChanged {
  PartitionId partition{};
  bool up = true;
  GANTRY_EVENT(8, "partition_up") { v(1, "partition", s.partition); v(2, "up", s.up); }
};

struct KeyRegistered {
  std::string public_key;
  std::optional<std::string> user;  // unset: removed
  GANTRY_EVENT(9, "key_registered") { v(1, "public_key", s.public_key); v(2, "user", s.user); }
};

// ---- jobs waiting

struct JobSubmitted {  // its spec is in the same commit, by the same id
  JobId job{};
  PartitionId partition{};
  std::optional<Duration> time_limit;
  Hold hold = Hold::none;
  std::vector<DependencyStatus> dependencies;  // of the spec's, as they stand
  std::optional<Instant> not_before;
  std::vector<Span> corr_met, corr_never;           // aftercorr, as it stands
  GANTRY_EVENT(20, "job_submitted") {
    v(1, "job", s.job); v(2, "partition", s.partition); v(3, "time_limit", s.time_limit);
    v(4, "hold", s.hold); v(5, "dependencies", s.dependencies); v(6, "not_before", s.not_before);
    v(7, "corr_met", s.corr_met); v(8, "corr_never", s.corr_never);
  }
};

struct JobHeld {
  JobId job{};
  Hold hold = Hold::user;
  std::string cause;
  GANTRY_EVENT(21, "job_held") { v(1, "job", s.job); v(2, "hold", s.hold); v(3, "cause", s.cause); }
};

struct JobReleased {  // hold and back-off are off
  JobId job{};
  GANTRY_EVENT(22, "job_released") { v(1, "job", s.job); }
};

struct JobUpdated {  // what is set, changed
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
  GANTRY_EVENT(23, "job_updated") {
    v(1, "job", s.job); v(2, "partition", s.partition); v(3, "time_limit", s.time_limit);
    v(4, "unlimited_time", s.unlimited_time); v(5, "nice", s.nice); v(6, "priority", s.priority);
    v(7, "name", s.name); v(8, "comment", s.comment); v(9, "begin", s.begin);
    v(10, "max_running", s.max_running);
  }
};

struct DependencySettled {
  JobId job{};
  std::uint32_t index = 0;           // in the job's list
  bool met = false;                  // else it never will be
  std::optional<Instant> not_before;
  GANTRY_EVENT(24, "dependency_settled") {
    v(1, "job", s.job); v(2, "index", s.index); v(3, "met", s.met);
    v(4, "not_before", s.not_before);
  }
};

struct TaskDependencySettled {  // aftercorr, of some tasks
  JobId array{};
  std::vector<Span> ordinals;
  bool met = false;
  GANTRY_EVENT(25, "task_dependency_settled") {
    v(1, "array", s.array); v(2, "ordinals", s.ordinals); v(3, "met", s.met);
  }
};

struct TasksCancelled {  // while they were pending
  JobId array{};
  std::vector<Span> ordinals;
  Outcome outcome = Outcome::cancelled;
  std::string cause;
  GANTRY_EVENT(26, "tasks_cancelled") {
    v(1, "array", s.array); v(2, "ordinals", s.ordinals); v(3, "outcome", s.outcome);
    v(4, "cause", s.cause);
  }
};

struct TaskSplit {  // a pending task becomes an element, a job of its own
  JobId array{};
  std::uint32_t ordinal = 0;
  JobId job{};
  GANTRY_EVENT(27, "task_split") { v(1, "array", s.array); v(2, "ordinal", s.ordinal); v(3, "job", s.job); }
};

// ---- an attempt

struct JobPlaced {
  JobId job{};
  Attempt attempt{};
  std::vector<sched::NodeGrant> grants;
  bool exclusive = false;
  GANTRY_EVENT(30, "job_placed") {
    v(1, "job", s.job); v(2, "attempt", s.attempt); v(3, "grants", s.grants);
    v(4, "exclusive", s.exclusive);
  }
};

struct NodeReady {  // prepared and held, or running its holder
  JobId job{};
  NodeId node{};
  RunState state = RunState::ready;
  GANTRY_EVENT(31, "node_ready") { v(1, "job", s.job); v(2, "node", s.node); v(3, "state", s.state); }
};

struct JobStarted {
  JobId job{};
  GANTRY_EVENT(32, "job_started") { v(1, "job", s.job); }
};

struct JobWarned {
  JobId job{};
  GANTRY_EVENT(33, "job_warned") { v(1, "job", s.job); }
};

struct JobFinishing {  // decided how it ends; every node has to let go yet
  JobId job{};
  Outcome outcome = Outcome::completed;
  std::optional<ExitStatus> exit;
  std::string cause;
  std::optional<RequeueWhy> requeue;
  std::optional<Hold> hold;
  GANTRY_EVENT(34, "job_finishing") {
    v(1, "job", s.job); v(2, "outcome", s.outcome); v(3, "exit", s.exit); v(4, "cause", s.cause);
    v(5, "requeue", s.requeue); v(6, "hold", s.hold);
  }
};

struct NodeExited {  // nothing of the attempt is left on this node
  JobId job{};
  NodeId node{};
  proto::ExitCause cause = proto::ExitCause::exited;
  ExitStatus exit;
  std::string message;
  Usage usage;
  std::optional<Duration> ran;  // by the node's clock
  GANTRY_EVENT(35, "node_exited") {
    v(1, "job", s.job); v(2, "node", s.node); v(3, "cause", s.cause); v(4, "exit", s.exit);
    v(5, "message", s.message); v(6, "usage", s.usage); v(7, "ran", s.ran);
  }
};

struct JobEnded {
  JobId job{};
  Outcome outcome = Outcome::completed;
  ExitStatus exit;
  std::string cause;
  GANTRY_EVENT(36, "job_ended") {
    v(1, "job", s.job); v(2, "outcome", s.outcome); v(3, "exit", s.exit); v(4, "cause", s.cause);
  }
};

struct JobRequeued {
  JobId job{};
  RequeueWhy why = RequeueWhy::asked;
  std::optional<Instant> not_before;  // back-off
  Hold hold = Hold::none;
  std::string cause;
  GANTRY_EVENT(37, "job_requeued") {
    v(1, "job", s.job); v(2, "why", s.why); v(3, "not_before", s.not_before); v(4, "hold", s.hold);
    v(5, "cause", s.cause);
  }
};

struct JobsForgotten {  // min_job_age after their end
  std::vector<JobId> jobs;
  GANTRY_EVENT(38, "jobs_forgotten") { v(1, "jobs", s.jobs); }
};

struct StepCreated {
  JobId job{};
  StepId step{};
  std::string name;
  std::uint32_t tasks = 0;
  std::uint32_t cpus = 0;
  std::vector<NodeId> nodes;
  GANTRY_EVENT(39, "step_created") {
    v(1, "job", s.job); v(2, "step", s.step); v(3, "name", s.name); v(4, "tasks", s.tasks);
    v(5, "cpus", s.cpus); v(6, "nodes", s.nodes);
  }
};

struct StepEnded {
  JobId job{};
  StepId step{};
  ExitStatus exit;
  Instant started{};
  Instant ended{};
  Usage usage;
  GANTRY_EVENT(40, "step_ended") {
    v(1, "job", s.job); v(2, "step", s.step); v(3, "exit", s.exit); v(4, "started", s.started);
    v(5, "ended", s.ended); v(6, "usage", s.usage);
  }
};

#undef GANTRY_EVENT

}  // namespace gantry::core::event

namespace gantry::core {

using Event = std::variant<
    event::ControllerStarted, event::NodeDeclared, event::PartitionDeclared, event::NodeRegistered,
    event::NodeHealthChanged, event::NodeIntentChanged, event::NodeEnrolled,
    event::PartitionUpChanged, event::KeyRegistered, event::JobSubmitted, event::JobHeld,
    event::JobReleased, event::JobUpdated, event::DependencySettled, event::TaskDependencySettled,
    event::TasksCancelled, event::TaskSplit, event::JobPlaced, event::NodeReady, event::JobStarted,
    event::JobWarned, event::JobFinishing, event::NodeExited, event::JobEnded, event::JobRequeued,
    event::JobsForgotten, event::StepCreated, event::StepEnded>;

// As it stands in the journal.
struct JournalEvent {
  Instant at{};
  Event event;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "at", s.at);
    v(2, "event", s.event);
  }
};

}  // namespace gantry::core
