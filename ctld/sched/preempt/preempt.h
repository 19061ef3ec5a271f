// Who must go so that a job can start: the cheapest loss of work, by the rules of quota and class.
// The model is Kueue's (KEP-1337, KEP-79; pkg/scheduler/preemption) with placement and cost added.
//
// May be a victim of job x in tenant c, unless its class is not preemptible, it has run for less
// than its class's minimum, was preempted as often as its class allows, or is leaving already:
// - of c itself: a job of a lower class, if x's class preempts or x is within c's own quota;
// - of another tenant in a cohort with c: a job of a lower class, if x is within c's own quota and
//   c's reclaim policy is not never. More quota may be owned than there are nodes;
// - of another tenant that exceeds its own quota in what x lacks, as do all cohorts above it up to
//   below the one that it shares with c. If x fits the quota of c, or of a cohort below that shared
//   one, without borrowing: by c's reclaim policy (any, lower class, never; in a cohort's quota any
//   but never). If x's side borrows too: only a lower class, if x's class preempts, or its own
//   class if that is wanted (`balance`), which loses no more than that; and by share:
//     rule a: value(x's side with x) <= value(its side without it)
//     rule b, where a makes no room: value(x's side with x) < value(its side with it), once a
//     tenant
// Reclaim and rule a alone never come back to where they were. With classes there can be rounds: so
// who was preempted kMostByClass times is only ever reclaimed, and every sequence ends.
// A partition without quota has no guarantee: tenants may take from it what they are guaranteed.
//
//   cost(v) = GPUs (cores where it has none) * min(now - start, now - checkpoint + restart)
//             * (1 + 0.5 * times preempted), at least 1; without requeue all since the start
//
// The highest class among the victims is minimised first, then the sum of costs: exactly for jobs
// of one node, for gangs by the cheapest nodes of each topology domain; where these may not go
// together, by the first set of nodes that may (node_sets.h). What is not needed is put back, so no
// victim can be left out. Jobs that are leaving count as gone.
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
  QuotaTree& quota;  // what runs and what is reserved; as before when the search is over
  const JobClass& cls;
  NodeChoice choice;  // where it is to run
  QuotaNeed need;     // what it would be charged there
  Instant now;
  // Room on nodes that is free, or will be when jobs have left, but is reserved for others.
  std::span<const HeldRoom> held{};
  // What `quota` holds for claims: no use that could make a tenant's running jobs victims.
  std::span<const HeldQuota> claimed{};
  std::uint32_t user = kNoShare;  // of the job; see neighbours.h
  bool reclaim = true;            // of guaranteed quota
  bool by_class = true;           // of lower classes; only if its class preempts
  bool rule_b = true;
  // Rules a and b against jobs of x's own class as well, which lose at most so much of what they
  // have run; 0: no.
  Duration balance{};
};

struct Victim {
  JobId job;
  PreemptWhy why = PreemptWhy::by_class;
  std::int64_t lost_work = 0;  // GPU-microseconds (of cores where it has none)
};

struct VictimSet {
  std::vector<Victim> victims;     // by job; none: it fits when those who leave have left
  std::vector<Share> shares;       // where the job fits then
  std::int32_t highest_class = 0;  // value; of the victims
  std::int64_t cost = 0;           // sum
  Duration grace{};                // the longest of their classes
};

// nullopt: no set of allowed victims makes room.
std::optional<VictimSet> find_victims(const PreemptRequest& request);

}  // namespace gantry::sched
