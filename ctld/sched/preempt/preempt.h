// Finds the jobs that must leave so that a job can start: the cheapest loss of work, by the rules
// of quota and class. The model is Kueue's (KEP-1337, KEP-79; pkg/scheduler/preemption) with
// placement and cost added.
//
// A running job may be a victim of job x in tenant c if it is one of these, unless its class is not
// preemptible, it has run for less than its class's minimum, it was preempted as often as its class
// allows, or it is leaving already:
// - of c itself: a job of a lower class, if x's class preempts or x is within c's own quota;
// - of another tenant in a cohort with c: a job of a lower class, if x is within c's own quota and
//   c's reclaim policy is not never. More quota may be owned than there are nodes;
// - of another tenant that exceeds its own quota in what x lacks, as do all cohorts above it up to
//   below the one that it shares with c. If x fits, without borrowing, the quota of c or of a
//   cohort of c below the shared one, c's reclaim policy decides: any, lower class, or never (in a
//   cohort's quota lower class means any). If x's side borrows too, the victim is of a lower class
//   and x's class preempts, or it is of x's own class if that is wanted (`balance`, which also
//   limits what it may lose); and one of these must hold:
//     rule a: value(x's side with x) <= value(the victim's side without the victim)
//     rule b, if rule a makes no room: value(x's side with x) < value(the victim's side with the
//             victim), once for each tenant
// Reclaim and rule a alone never come back to an earlier state. With classes jobs could preempt
// each other in rounds; so a job that was preempted kMostByClass times can only be reclaimed, and
// every sequence ends.
//
// Nothing is guaranteed to jobs in a partition without quota: a tenant may take from them what its
// quota guarantees. A class that names the classes from which it takes may take from a tenant in a
// cohort with its own, too, if that one has no quota at all.
//
//   cost(v) = GPUs (cores where it has none) * min(now - start, now - checkpoint + restart)
//             * (1 + 0.5 * times preempted), at least 1; without requeue all since the start
//
// The highest class among the victims is minimised first, then the sum of costs: exactly for jobs
// of one node, for gangs by the cheapest nodes of each topology domain; if their jobs may not leave
// together, by the first set of nodes whose jobs may (node_sets.h). Victims that are not needed are
// put back, so none can be left out. Jobs that are leaving count as gone.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ctld/sched/nodes/eligible.h"
#include "ctld/sched/nodes/running.h"
#include "ctld/sched/plan.h"
#include "ctld/sched/tenant/quota.h"

namespace gantry::sched {

inline constexpr Duration kRestartTime = seconds(60);  // what a restart from a checkpoint costs
inline constexpr std::uint32_t kMostByClass = 16;      // preemptions of one job by class or share

struct HeldRoom {
  std::uint32_t node = 0;
  Room room;
};

struct HeldQuota {
  std::uint32_t quota_node = 0;
  QuotaNeed need;
};

struct PreemptRequest {
  const Grid& grid;
  const Running& running;
  const Eligible& eligible;
  QuotaTree& quota;  // what runs and is reserved; unchanged after the search
  const JobClass& cls;
  NodeChoice choice;  // nodes on which the job should run
  QuotaNeed need;     // what the job would be charged there
  Instant now;
  // Resources on nodes that are free, or will be when jobs have left, but are reserved for other
  // jobs.
  std::span<const HeldRoom> held{};
  // Parts of `quota` that are held for claims: their use makes no running job of the tenant a
  // victim.
  std::span<const HeldQuota> claimed{};
  std::uint32_t user = kNoShare;  // the job's user; see neighbours.h
  bool reclaim = true;            // may take back guaranteed quota
  bool by_class = true;           // may preempt lower classes; only if its class preempts
  bool rule_b = true;
  // Rules a and b also hold against jobs of x's own class, which may lose at most this much run
  // time; 0: no such victims.
  Duration balance{};
};

struct Victim {
  JobId job;
  PreemptWhy why = PreemptWhy::by_class;
  std::int64_t lost_work = 0;  // GPU-microseconds (of cores where it has none)
};

struct VictimSet {
  std::vector<Victim> victims;     // by job; empty: the job fits when the leaving jobs have left
  std::vector<Share> shares;       // where the job fits then
  std::int32_t highest_class = 0;  // the highest class value of the victims
  std::int64_t cost = 0;           // sum over the victims
  Duration grace{};                // the longest grace time of their classes
};

// nullopt if no set of allowed victims makes enough room.
std::optional<VictimSet> find_victims(const PreemptRequest& request);

}  // namespace gantry::sched
