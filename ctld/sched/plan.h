// A plan: what the scheduler proposes. The core re-checks every start before it becomes fact, and
// drops (and counts) what no longer fits.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/job/job_state.h"
#include "ctld/sched/change.h"

namespace gantry::sched {

struct Start {
  JobId job;                      // of an array: the array's id, once for each element to start
  std::vector<NodeGrant> grants;  // in rank order
};

enum class PreemptWhy : std::uint8_t {
  by_class,  // it is of a lower class
  reclaim,   // the other's tenant takes back what is guaranteed to it
  by_share,  // the other's tenant borrows less
};

// Take this job away, so that another one can start there. The core sends its class's signal, and
// after the grace ends it; its nodes are kept for the other until then.
struct Preempt {
  JobId victim;
  JobId for_job;
  PreemptWhy why = PreemptWhy::by_class;
  std::int64_t lost_work = 0;  // GPU-microseconds (of cores where it has none) since its checkpoint
  NodeId node{};               // one of those that the other is to get
  bool first = true;           // of those who leave for one job, or one task of an array
};

// Verdict of a whole class; its jobs differ only in their place in the queue.
struct ClassVerdict {
  JobId head;       // first waiting job of the class, which it names
  Verdict of_head;  // resources, nodes_unavailable, bad_constraints, partition_down...
  Verdict of_rest;  // usually priority
};

struct Expected {  // when a waiting job would start, going by the limits
  JobId job;
  Instant start;
  std::vector<NodeId> nodes;  // for the reserved head; empty for estimates
};

struct PlanStats {
  std::uint64_t classes = 0;     // looked at
  std::uint64_t attempts = 0;    // placement attempts
  std::uint64_t steps = 0;       // ends looked at to find reservations
  std::uint64_t backfilled = 0;  // starts behind a blocked job
  bool budget_spent = false;     // more might start: plan again
  bool everything = true;        // looked at; or only what may have become possible (memory.h)
  Duration took{};               // by the clock of who asked for it; 0 in the simulator
};

struct Plan {
  Instant made_at{};
  std::vector<Start> starts;
  std::vector<Preempt> preemptions;
  std::vector<ClassVerdict> verdicts;  // of every class with waiting jobs that was looked at
  std::vector<Expected> expected;      // at least the reserved head of each partition
  bool estimated = false;              // expected holds estimates as well: older ones are void
  PlanStats stats;
};

}  // namespace gantry::sched
