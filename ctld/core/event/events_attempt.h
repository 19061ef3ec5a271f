// Events of attempts, from placement to end, and of their steps; see events.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/proto/node_report.h"
#include "ctld/core/event/event_fields.h"
#include "ctld/core/state/job.h"
#include "ctld/core/state/node.h"

namespace gantry::core::event {

struct JobPlaced {
  JobId job{};
  Attempt attempt{};
  std::vector<sched::NodeGrant> grants;
  bool exclusive = false;
  double charge = 0;                          // charge to the fair share, per second
  std::vector<WaitPart> waits{};              // causes of waiting until now
  std::string plan{};                         // of the price book; "" = on demand
  std::vector<BillItem> items{};              // lines of the bill
  std::vector<std::vector<HeldPart>> held{};  // what each grant adds to the lines
  UseOfJob use{};                             // what it counts for limits of use
  std::string labels{};                       // under which its bill is kept, as in LedgerParts
  GANTRY_EVENT(30, "job_placed") {
    v(1, "job", s.job);
    v(2, "attempt", s.attempt);
    v(3, "grants", s.grants);
    v(4, "exclusive", s.exclusive);
    v(5, "charge", s.charge);
    v(6, "waits", s.waits);
    v(7, "plan", s.plan);
    v(8, "items", s.items);
    v(9, "held", s.held);
    v(10, "use", s.use);
    v(11, "labels", s.labels);
  }
};

struct NodeReady {  // prepared and held, or running
  JobId job{};
  NodeId node{};
  RunState state = RunState::ready;
  GANTRY_EVENT(31, "node_ready") {
    v(1, "job", s.job);
    v(2, "node", s.node);
    v(3, "state", s.state);
  }
};

struct JobStarted {
  JobId job{};
  std::optional<Instant> started{};  // unset: when the event was recorded
  GANTRY_EVENT(32, "job_started") {
    v(1, "job", s.job);
    v(2, "started", s.started);
  }
};

struct JobWarned {
  JobId job{};
  GANTRY_EVENT(33, "job_warned") { v(1, "job", s.job); }
};

struct JobFinishing {  // its end is decided; its nodes still have to let go
  JobId job{};
  Outcome outcome = Outcome::completed;
  std::optional<ExitStatus> exit;
  std::string cause;
  std::optional<RequeueWhy> requeue;
  std::optional<Hold> hold;
  std::optional<Duration> grace{};  // time from signal to kill; unset: kill_wait
  bool for_own = false;             // preempted for a job of its own tenant: nothing is credited
  GANTRY_EVENT(34, "job_finishing") {
    v(1, "job", s.job);
    v(2, "outcome", s.outcome);
    v(3, "exit", s.exit);
    v(4, "cause", s.cause);
    v(5, "requeue", s.requeue);
    v(6, "hold", s.hold);
    v(7, "grace", s.grace);
    v(8, "for_own", s.for_own);
  }
};

struct NodeExited {  // nothing of the attempt is left on this node
  JobId job{};
  NodeId node{};
  proto::ExitCause cause = proto::ExitCause::exited;
  ExitStatus exit;
  std::string message;
  Usage usage;
  std::optional<Duration> ran;  // measured by the node's clock
  // Set by the batch node if the job ran since another time than the one recorded before.
  std::optional<Instant> started{};
  std::optional<Instant> ended{};  // unset: when the event was recorded
  GANTRY_EVENT(35, "node_exited") {
    v(1, "job", s.job);
    v(2, "node", s.node);
    v(3, "cause", s.cause);
    v(4, "exit", s.exit);
    v(5, "message", s.message);
    v(6, "usage", s.usage);
    v(7, "ran", s.ran);
    v(8, "started", s.started);
    v(9, "ended", s.ended);
  }
};

struct JobEnded {
  JobId job{};
  Outcome outcome = Outcome::completed;
  ExitStatus exit;
  std::string cause;
  GANTRY_EVENT(36, "job_ended") {
    v(1, "job", s.job);
    v(2, "outcome", s.outcome);
    v(3, "exit", s.exit);
    v(4, "cause", s.cause);
  }
};

struct JobRequeued {
  JobId job{};
  RequeueWhy why = RequeueWhy::asked;
  std::optional<Instant> not_before;  // back-off
  Hold hold = Hold::none;
  std::string cause;
  GANTRY_EVENT(37, "job_requeued") {
    v(1, "job", s.job);
    v(2, "why", s.why);
    v(3, "not_before", s.not_before);
    v(4, "hold", s.hold);
    v(5, "cause", s.cause);
  }
};

struct JobsForgotten {  // min_job_age after their end
  std::vector<JobId> jobs;
  GANTRY_EVENT(38, "jobs_forgotten") { v(1, "jobs", s.jobs); }
};

struct JobSuspended {
  JobId job{};
  GANTRY_EVENT(41, "job_suspended") { v(1, "job", s.job); }
};

struct JobResumed {
  JobId job{};
  GANTRY_EVENT(42, "job_resumed") { v(1, "job", s.job); }
};

struct NodeFrozen {  // a node has stopped its part of the job, or has let it go on
  JobId job{};
  NodeId node{};
  bool frozen = false;
  GANTRY_EVENT(43, "node_frozen") {
    v(1, "job", s.job);
    v(2, "node", s.node);
    v(3, "frozen", s.frozen);
  }
};

struct StepCreated {
  JobId job{};
  StepId step{};
  std::string name;
  std::uint32_t tasks = 0;
  std::uint32_t cpus = 0;
  std::vector<NodeId> nodes;
  std::vector<std::vector<std::uint16_t>> cores;  // by node; none with --overlap
  std::vector<std::uint32_t> node_tasks;          // by node
  bool cyclic = false;                            // tasks are numbered round-robin over the nodes
  std::uint32_t block = 0;                        // the same, so many at a time; 0 = not
  std::vector<std::vector<std::uint32_t>>
      ranks;                                     // by node, if the step named the node of each task
  std::vector<std::vector<std::uint16_t>> gpus;  // by node; none if it asked for none of its own
  std::vector<std::int64_t> memory;              // by node; none if it asked for none of its own
  Duration time_limit{};                         // 0 = none of its own
  std::uint32_t gpus_seen = 0;                   // as in StepState
  AskedTres tres;
  GANTRY_EVENT(39, "step_created") {
    v(1, "job", s.job);
    v(2, "step", s.step);
    v(3, "name", s.name);
    v(4, "tasks", s.tasks);
    v(5, "cpus", s.cpus);
    v(6, "nodes", s.nodes);
    v(7, "cores", s.cores);
    v(8, "node_tasks", s.node_tasks);
    v(9, "cyclic", s.cyclic);
    v(10, "block", s.block);
    v(11, "ranks", s.ranks);
    v(12, "gpus", s.gpus);
    v(13, "memory", s.memory);
    v(14, "time_limit", s.time_limit);
    v(23, "gpus_seen", s.gpus_seen);
    v(24, "tres", s.tres);
  }
};

struct StepEnded {
  JobId job{};
  StepId step{};
  ExitStatus exit;
  Instant started{};
  Instant ended{};
  Usage usage;
  bool timed_out = false;
  GANTRY_EVENT(40, "step_ended") {
    v(1, "job", s.job);
    v(2, "step", s.step);
    v(3, "exit", s.exit);
    v(4, "started", s.started);
    v(5, "ended", s.ended);
    v(6, "usage", s.usage);
    v(7, "timed_out", s.timed_out);
  }
};

}  // namespace gantry::core::event
