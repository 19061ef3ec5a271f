// What came of a replay, in numbers, and the forms in which people get it. Waits are from submit to
// the first start; bounded slowdown is max(1, (end - submit) / max(run, 10 s)), so that time lost
// to preemption counts as well.
#pragma once

#include <string>
#include <vector>

#include "ctld/replay/replay.h"

namespace gantry::replay {

struct Summary {     // of a tenant, or of all
  std::string name;  // "" = all
  std::size_t jobs = 0;
  double use = 0;  // of the cluster, mean over the replay
  double mean_wait = 0, median_wait = 0, p95_wait = 0, max_wait = 0;  // seconds
  double slowdown = 1;                                                // mean bounded
  double backlogged = 0;                                              // of the time
  double share_error = 0;            // of the cluster, mean while backlogged
  double nominal = 0;                // units; of tenants with quota
  double violation = 0;              // seconds beyond the reclaim deadline
  double no_place = 0;               // in which no room could be made for a claim
  double of_first = 0;               // of these, for the tenant's first waiting job
  std::size_t preempted = 0;         // times
  double lost = 0;                   // unit-seconds
  std::size_t due = 0, in_time = 0;  // jobs that are due at some time, and those that made it
  std::size_t given_up = 0;          // of these, that could not any more (deadlines=on)
};

// Jobs that were told when they would start, and when they did: seconds, later is positive.
struct Predictions {
  std::size_t jobs = 0, later = 0;
  double mean = 0, mean_distance = 0, p95 = 0, latest = 0, earliest = 0;
};

struct Report {
  std::string label;
  Summary all;
  std::vector<Summary> tenants;
  Predictions predictions;
  double jain = 1, reclaimed = 0;
  std::uint64_t plans = 0, backfilled = 0;
  Duration deadline{};
  Duration span{};
};

Report summarise(const Outcome& outcome, const Trace& trace);

// What the units are called: "GPU", "core".
std::string_view unit_name(Resource unit);

std::string to_table(const std::vector<Report>& reports, Resource unit, bool by_tenant);
std::string to_json(const std::vector<Report>& reports, const Trace& trace, const Cluster& cluster);
// A CSV line for each job: what it asked for, when it was told that it would start, and when it
// did.
std::string to_jobs(const std::vector<Outcome>& sides, const Trace& trace);
// Every claim to nominal quota that was not met in time.
std::string to_violations(const Outcome& outcome, Resource unit);
// Use over time by tenant, one plot for each side, and the distribution of waits of all sides.
std::string to_svg(const std::vector<Outcome>& sides, const Trace& trace, const Cluster& cluster);
// Who came, started, had to go, and ended: one line each. `tenants`: only their jobs, and those
// that had to leave for them; none: all.
std::string to_timeline(const Outcome& outcome, const Trace& trace, Resource unit,
                        const std::vector<std::string>& tenants);

}  // namespace gantry::replay
