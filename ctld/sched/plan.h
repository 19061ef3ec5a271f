// A plan is what the scheduler proposes. The core checks every start again before it becomes a
// fact; it drops and counts the starts that no longer fit.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/job/job_state.h"
#include "ctld/sched/change.h"

namespace gantry::sched {

struct Start {
  JobId job;                      // for an array: the array's id, once for each element to start
  std::vector<NodeGrant> grants;  // in rank order
  // The limit that the job gets; set only for a job that allows a lower one (ClassKey::time_min).
  std::optional<std::optional<Duration>> limit{};
};

enum class PreemptWhy : std::uint8_t {
  by_class,  // the victim has a lower class than the job that needs its place
  reclaim,   // the tenant of that job takes back its guaranteed quota
  by_share,  // the tenant of that job borrows less than the victim's
};

// The victim has to leave so that `for_job` can start on its nodes. The core ends it after the
// grace time of the victim's priority class; until then the scheduler keeps its nodes for
// `for_job`.
struct Preempt {
  JobId victim;
  JobId for_job;
  PreemptWhy why = PreemptWhy::by_class;
  std::int64_t lost_work = 0;  // GPU-microseconds (cores, if it has no GPUs) since its checkpoint
  NodeId node{};               // a node that for_job will get
  bool first = true;           // true for the first victim of this start of for_job
};

// The verdict on a whole class; its jobs differ only in their place in the queue.
struct ClassVerdict {
  JobId head;       // the first waiting job of the class, which stands for the class
  Verdict of_head;  // resources, nodes_unavailable, bad_constraints, partition_down...
  Verdict of_rest;  // usually priority
};

struct Expected {  // when a waiting job would start if all jobs ran to their limits
  JobId job;
  Instant start;
  std::vector<NodeId> nodes;  // nodes of its reservation; empty for an estimate
};

struct PlanStats {
  std::uint64_t classes = 0;     // classes examined
  std::uint64_t attempts = 0;    // placement attempts
  std::uint64_t steps = 0;       // ends of jobs examined to find reservations
  std::uint64_t backfilled = 0;  // starts of jobs after a blocked one
  bool budget_spent = false;     // true if more jobs might start: plan again
  bool everything = true;        // false: examined only what may have become possible (memory.h)
  Duration took{};               // measured by the caller; 0 in the simulator
};

struct Plan {
  Instant made_at{};
  std::vector<Start> starts;
  std::vector<Preempt> preemptions;
  std::vector<ClassVerdict> verdicts;  // of every examined class with waiting jobs
  std::vector<Expected> expected;      // at least the reserved first jobs of each partition
  bool estimated = false;              // `expected` also has new estimates, and older ones are void
  PlanStats stats;
};

}  // namespace gantry::sched
