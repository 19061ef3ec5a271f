// A trace through the shipped scheduler under a virtual clock: what a controller would do with the
// same jobs, without any of its I/O. Deterministic: the same input gives the same result, bit by
// bit.
//
// Within one moment: submissions, then the jobs that end at their limit (or were made to leave) all
// at once, then those that end early one by one with a plan after each: as pyss, the simulator of
// the reference results, has it (its forecast has the former free before their end is reported).
//
// A preempted job goes on until the end of its class's grace, unless it ends before. It keeps its
// submit time and place, and what it saved: it runs again from its last checkpoint, which costs
// sched::kRestartTime, or from the beginning.
#pragma once

#include <functional>

#include "ctld/replay/meter.h"
#include "ctld/replay/site.h"

namespace gantry::replay {

inline constexpr Duration kKillTime = seconds(5);  // from the end of the grace until nodes are free
inline constexpr Duration kPlanningTime = seconds(1);  // until a plan asks

// Whose quota the measures speak of: of the replayed site or, for a side without tenants, the other
// one's.
struct Yardstick {
  sched::TenancyPtr view = std::make_shared<const sched::Tenancy>();
  std::map<std::string, std::uint32_t> nodes;     // quota node by tenant
  Duration deadline = kKillTime + kPlanningTime;  // of a reclaim: + the longest grace of a class
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
  std::optional<std::uint32_t> other;  // preempted: for which job
  double lost = 0;                     // unit-seconds of work
  std::string nodes;                   // started: host list
};

struct JobResult {
  std::int64_t units = 0;           // GPUs, or cores
  std::uint32_t tenant = 0;         // index
  std::optional<Instant> foretold;  // its start, when a plan first said one
  std::optional<Instant> started;   // first
  std::optional<Instant> ended;     // for good
  std::uint32_t preemptions = 0;
  double lost = 0;         // unit-seconds
  bool cancelled = false;  // by a preemption whose class says so
  bool left_out = false;   // larger than the cluster
  bool given_up = false;   // could not end before it was due any more
};

struct Outcome {
  std::string label;
  std::vector<std::string> tenants;  // by index
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
  double reclaimed = 0;  // unit-seconds that ran on room made by preemption
  std::uint64_t plans = 0, backfilled = 0, preemptions = 0;
  std::string audit;  // of the replica at the end; "" = right
};

struct ReplayOptions {
  bool happenings = false;                   // keep them
  std::optional<Duration> checkpoint_every;  // of jobs that do not say
  std::function<void(std::size_t done, std::size_t all)> progress;
};

Result<Outcome> replay(const Trace& trace, const Cluster& cluster, const Site& site,
                       const Yardstick& yardstick, const ReplayOptions& options);

}  // namespace gantry::replay
