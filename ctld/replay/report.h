// The results of a replay in numbers, and their output formats. Waits last from submit to the first
// start. Bounded slowdown is max(1, (end - submit) / max(run, 10 s)), so that time lost by
// preemption counts too.
#pragma once

#include <string>
#include <vector>

#include "ctld/replay/replay.h"

namespace gantry::replay {

struct Summary {     // results of a tenant, or of all
  std::string name;  // "" = all
  std::size_t jobs = 0;
  double use = 0;  // part of the cluster, mean over the replay
  double mean_wait = 0, median_wait = 0, p95_wait = 0, max_wait = 0;  // seconds
  double slowdown = 1;                                                // mean bounded slowdown
  double backlogged = 0;      // part of the time in which it had waiting jobs
  double share_error = 0;     // part of the cluster, mean over that time
  double nominal = 0;         // units of tenants with quota
  double violation = 0;       // seconds beyond the reclaim deadline
  double no_place = 0;        // seconds in which no room could be made for a claim
  double of_first = 0;        // seconds of these caused by the tenant's first waiting job
  std::size_t preempted = 0;  // number of preemptions
  double lost = 0;            // lost unit-seconds
  // Jobs with a due time, and those of them that ended in time.
  std::size_t due = 0, in_time = 0;
  std::size_t given_up = 0;  // those of them that were given up as impossible (deadlines=on)
};

// Jobs with a predicted start, compared with their real start, in seconds; later is positive.
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

// The name of the units: "GPU", "core".
std::string_view unit_name(Resource unit);

std::string to_table(const std::vector<Report>& reports, Resource unit, bool by_tenant);
std::string to_json(const std::vector<Report>& reports, const Trace& trace, const Cluster& cluster);
// CSV with a line for each job: what it asked for, its predicted start, and its real start.
std::string to_jobs(const std::vector<Outcome>& sides, const Trace& trace);
// Lists every claim to nominal quota that was not met in time.
std::string to_violations(const Outcome& outcome, Resource unit);
// Draws the use over time by tenant, one plot for each side, and the distribution of waits of all
// sides.
std::string to_svg(const std::vector<Outcome>& sides, const Trace& trace, const Cluster& cluster);
// Lists which jobs came, started, were preempted and ended, one line for each event. `tenants`
// restricts the list to their jobs, and to jobs that were preempted for these; empty: all jobs.
std::string to_timeline(const Outcome& outcome, const Trace& trace, Resource unit,
                        const std::vector<std::string>& tenants);

}  // namespace gantry::replay
