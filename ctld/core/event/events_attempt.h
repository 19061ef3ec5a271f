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
  std::vector<WaitPart> waits{};              // charge to the fair share, per second of the run
  std::string plan{};                         // of the price book; "" = on demand
  std::vector<BillItem> items{};              // lines of the bill
  std::vector<std::vector<HeldPart>> held{};  // what each grant adds to the lines
  UseOfJob use{};                             // what the attempt counts for limits of use
  std::string labels{};  // labels under which its bill is kept, as in LedgerParts
  GANTRY_EVENT(30, "job_placed") {
    FIELD(1, job), FIELD(2, attempt), FIELD(3, grants), FIELD(4, exclusive), FIELD(5, charge),
        FIELD(6, waits), FIELD(7, plan), FIELD(8, items), FIELD(9, held), FIELD(10, use),
        FIELD(11, labels);
  }
};

struct NodeReady {  // prepared and held, or running
  JobId job{};
  NodeId node{};
  RunState state = RunState::ready;
  GANTRY_EVENT(31, "node_ready") { FIELD(1, job), FIELD(2, node), FIELD(3, state); }
};

struct JobStarted {
  JobId job{};
  std::optional<Instant> started{};  // unset: when the event was recorded
  GANTRY_EVENT(32, "job_started") { FIELD(1, job), FIELD(2, started); }
};

struct JobWarned {
  JobId job{};
  GANTRY_EVENT(33, "job_warned") { FIELD(1, job); }
};

struct JobFinishing {  // the end of the attempt is decided; its nodes are not released yet
  JobId job{};
  Outcome outcome = Outcome::completed;
  std::optional<ExitStatus> exit;
  std::string cause;
  std::optional<RequeueWhy> requeue;
  std::optional<Hold> hold;
  std::optional<Duration> grace{};  // time from signal to kill; unset: kill_wait
  bool for_own = false;             // preempted for a job of its own tenant, so nothing is credited
  GANTRY_EVENT(34, "job_finishing") {
    FIELD(1, job), FIELD(2, outcome), FIELD(3, exit), FIELD(4, cause), FIELD(5, requeue),
        FIELD(6, hold), FIELD(7, grace), FIELD(8, for_own);
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
  // Set by the batch node if the job's start was not the time recorded before.
  std::optional<Instant> started{};
  std::optional<Instant> ended{};  // unset: when the event was recorded
  GANTRY_EVENT(35, "node_exited") {
    FIELD(1, job), FIELD(2, node), FIELD(3, cause), FIELD(4, exit), FIELD(5, message),
        FIELD(6, usage), FIELD(7, ran), FIELD(8, started), FIELD(9, ended);
  }
};

struct JobEnded {
  JobId job{};
  Outcome outcome = Outcome::completed;
  ExitStatus exit;
  std::string cause;
  GANTRY_EVENT(36, "job_ended") {
    FIELD(1, job), FIELD(2, outcome), FIELD(3, exit), FIELD(4, cause);
  }
};

struct JobRequeued {
  JobId job{};
  RequeueWhy why = RequeueWhy::asked;
  std::optional<Instant> not_before;  // earliest time of the next start
  Hold hold = Hold::none;
  std::string cause;
  GANTRY_EVENT(37, "job_requeued") {
    FIELD(1, job), FIELD(2, why), FIELD(3, not_before), FIELD(4, hold), FIELD(5, cause);
  }
};

struct JobsForgotten {  // min_job_age after these jobs ended
  std::vector<JobId> jobs;
  GANTRY_EVENT(38, "jobs_forgotten") { FIELD(1, jobs); }
};

struct JobSuspended {
  JobId job{};
  GANTRY_EVENT(41, "job_suspended") { FIELD(1, job); }
};

struct JobResumed {
  JobId job{};
  GANTRY_EVENT(42, "job_resumed") { FIELD(1, job); }
};

struct NodeFrozen {  // a node has stopped its part of the job, or continued it
  JobId job{};
  NodeId node{};
  bool frozen = false;
  GANTRY_EVENT(43, "node_frozen") { FIELD(1, job), FIELD(2, node), FIELD(3, frozen); }
};

struct StepCreated {
  JobId job{};
  StepId step{};
  std::string name;
  std::uint32_t tasks = 0;
  std::uint32_t cpus = 0;
  std::vector<NodeId> nodes;
  std::vector<std::vector<std::uint16_t>> cores;  // by node; empty with --overlap
  std::vector<std::uint32_t> node_tasks;          // by node
  bool cyclic = false;                            // tasks are numbered round-robin over the nodes
  std::uint32_t block = 0;                        // likewise, in blocks of this many tasks; 0 = not
  std::vector<std::vector<std::uint32_t>>
      ranks;  // by node, if the step named the node of each task
  std::vector<std::vector<std::uint16_t>>
      gpus;                          // by node; empty if the step asked for no GPUs of its own
  std::vector<std::int64_t> memory;  // by node; empty if the step asked for no memory of its own
  Duration time_limit{};             // 0 = no limit of its own
  std::uint32_t gpus_seen = 0;       // as in StepState
  AskedTres tres;
  GANTRY_EVENT(39, "step_created") {
    FIELD(1, job), FIELD(2, step), FIELD(3, name), FIELD(4, tasks), FIELD(5, cpus), FIELD(6, nodes),
        FIELD(7, cores), FIELD(8, node_tasks), FIELD(9, cyclic), FIELD(10, block), FIELD(11, ranks),
        FIELD(12, gpus), FIELD(13, memory), FIELD(14, time_limit), FIELD(23, gpus_seen),
        FIELD(24, tres);
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
    FIELD(1, job), FIELD(2, step), FIELD(3, exit), FIELD(4, started), FIELD(5, ended),
        FIELD(6, usage), FIELD(7, timed_out);
  }
};

}  // namespace gantry::core::event
