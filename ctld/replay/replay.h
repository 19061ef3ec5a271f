// Runs a trace through the shipped scheduler under a virtual clock: what a controller would do with
// the same jobs, without any of its I/O. It is deterministic: the same input gives the same result,
// bit by bit.
//
// The order within one moment is: first submissions, then all jobs that end at their limit (or were
// preempted) at once, then jobs that end early, one by one with a plan after each. The simulator of
// the reference results, pyss, does the same (its forecast treats jobs at their limit as ended
// before their end is reported).
//
// A preempted job continues until the end of its class's grace time, unless it ends earlier. It
// keeps its submit time, its place and what it has saved. It runs again from its last checkpoint,
// which costs sched::kRestartTime, or from the beginning.
#pragma once

#include <functional>

#include "ctld/replay/meter.h"
#include "ctld/replay/site.h"
#include "ctld/sched/tenancy.h"

namespace gantry::replay {

inline constexpr Duration kKillTime =
    seconds(5);  // from the end of the grace time until the nodes are free
inline constexpr Duration kPlanningTime =
    seconds(1);  // time between a change and the plan that follows

// Whose quota the measures use: that of the replayed site, or for a side without tenants that of
// the other site.
struct Yardstick {
  sched::TenancyPtr view = std::make_shared<const sched::Tenancy>();
  std::map<std::string, std::uint32_t> nodes;  // quota node by tenant
  // Deadline of a reclaim; the longest grace time of a class is added.
  Duration deadline = kKillTime + kPlanningTime;
};
Yardstick yardstick_of(const Site& site);

enum class What : std::uint8_t {
  submitted,
  started,
  preempted,
  requeued,
  cancelled,
  given_up,
  ended
};
struct Happening {
  Instant at{};
  What what = What::submitted;
  std::uint32_t job = 0;               // index in the trace
  std::optional<std::uint32_t> other;  // if preempted: the job for which it had to leave
  double lost = 0;                     // unit-seconds of work
  std::string nodes;                   // if started: host list
};

struct JobResult {
  std::int64_t units = 0;           // GPUs or cores
  std::uint32_t tenant = 0;         // index
  std::optional<Instant> foretold;  // first start that a plan predicted
  std::optional<Instant> started;   // first start
  std::optional<Instant> ended;     // final end
  std::uint32_t preemptions = 0;
  double lost = 0;         // unit-seconds
  bool cancelled = false;  // preempted by a class whose victims are cancelled
  bool left_out = false;   // larger than the cluster, so not replayed
  bool given_up = false;   // it could no longer end before it was due
};

struct Outcome {
  std::string label;
  std::vector<std::string> tenants;  // tenants by index
  std::vector<JobResult> jobs;       // as in the trace
  std::vector<TenantMeasure> measures;
  std::vector<UseChange> changes;
  std::vector<Violation> violations;
  std::vector<Happening> happenings;
  std::vector<std::string> notes;
  Instant begin{}, end{};
  Duration deadline{};
  std::int64_t total = 0;  // units of the cluster
  double jain = 1, jain_time = 0;
  double reclaimed = 0;  // unit-seconds that jobs ran in places made free by preemption
  std::uint64_t plans = 0, backfilled = 0, preemptions = 0;
  std::string audit;  // audit of the replica at the end; "" = correct
};

struct ReplayOptions {
  bool happenings = false;                   // keep the list of what happened to jobs
  std::optional<Duration> checkpoint_every;  // for jobs that do not tell it
  std::function<void(std::size_t done, std::size_t all)> progress;
};

Result<Outcome> replay(const Trace& trace, const Cluster& cluster, const Site& site,
                       const Yardstick& yardstick, const ReplayOptions& options);

}  // namespace gantry::replay
