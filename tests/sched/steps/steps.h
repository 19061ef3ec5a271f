// A cluster of three nodes with four cores each, on which a test runs one step of a plan. The
// tenants are partitions: "red" is partition 0, and "blue", if there is one, is partition 1.
#pragma once

#include <memory>
#include <vector>

#include "ctld/sched/cycle/replica.h"
#include "ctld/sched/cycle/room.h"

namespace gantry::sched::steps {

inline constexpr Instant kNow{seconds(1'000'000).us};
inline constexpr Duration kGrace = seconds(30);  // grace of both priority classes
inline constexpr std::uint32_t kUrgent = 1;  // the priority class that preempts; class 0 does not

// One tenant with this many cores, which cannot borrow and may have two jobs at a time.
TenancyPtr red_alone(std::int64_t cores = 8);
// Two tenants in one cohort with this many cores each; each may borrow what the other does not use.
TenancyPtr red_and_blue(std::int64_t red, std::int64_t blue);

struct Steps {
  explicit Steps(const TenancyPtr& tenancy = red_alone());

  JobQueued job(std::uint32_t cpus, Duration limit = seconds(100), std::uint32_t partition = 0,
                std::uint32_t priority_class = 0);  // one task with this many cores
  JobId submit(const JobQueued& job);
  JobId submit(std::uint32_t cpus, Duration limit = seconds(100), std::uint32_t partition = 0,
               std::uint32_t priority_class = 0) {
    return submit(job(cpus, limit, partition, priority_class));
  }
  // Runs a job on the node until the given time.
  JobId run(std::uint32_t node, std::vector<std::uint16_t> cpus, Instant until,
            std::uint32_t partition = 0);
  void fill(Instant until, std::uint32_t partition = 0);  // runs a job on all cores of each node
  void end(JobId job, std::uint32_t node) { replica.apply(NodeReleased{job, NodeId{node}}); }
  void set_available(std::uint32_t node, bool available);

  Draft draft();  // begins a plan at `now`
  JobClass& class_of(JobId job);
  const Waiting& waiting(JobId job);
  std::int64_t used(std::uint32_t tenant = 0);  // cores of the quota node, in thousandths
  // Returns the turn of the first job of a line; blocked() returns one that was blocked for this
  // reason.
  LineTurn turn_of(JobId job);
  LineTurn blocked(Draft& draft, JobId job, Blocked::By by = Blocked::By::room);
  std::vector<JobId> running_on(std::uint32_t node);

  Replica replica;
  Policy policy;
  Instant now = kNow;
  std::uint64_t last = 0;

 private:
  std::vector<NodeChanged> nodes_;
};

// The steps that other steps need, in the order in which a plan makes them.
struct Making {
  explicit Making(Steps& steps);
  void begin_order();  // an order of all partitions, none skipped

  Draft d;
  Trial trial;
  PlanQuota quota;
  SlicePlan slices;
  SearchSpace nodes;
  ReservationBook book;
  Starter starter;
  Ahead ahead;
  VictimSearch victims;
};

Reservation reservation(JobId job, Instant start, std::uint32_t node);

}  // namespace gantry::sched::steps
