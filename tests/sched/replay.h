// Replays a workload log (Standard Workload Format) through the shipped scheduler under a virtual
// clock, as a controller would run these jobs, without any of its I/O.
//
// The order of events within one moment is that of pyss, the simulator that made the reference
// results: first submissions, then all jobs that end at their limit together, then jobs that end
// early, one by one, with a plan after each. (In pyss, the planner knows the ends at the limit
// before they are reported.)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ctld/sched/cycle/schedule.h"

namespace gantry::sched {

struct LogJob {
  std::uint64_t id = 0;
  std::int64_t submit = 0;  // seconds
  std::int64_t run = 0;     // seconds
  std::int64_t limit = 0;   // seconds
  std::uint32_t processors = 0;
  std::int64_t logged_wait = 0;  // field 3: the wait under the log's own scheduler, seconds
};

// Returns the jobs by submit time, then id; nullopt if the file does not exist. Reads *.gz through
// zcat.
std::optional<std::vector<LogJob>> read_swf(const std::string& path);

// Returns the text of a file; reads *.gz through zcat.
std::string read_trace(const std::string& path);

// Returns the path of a trace, if present: beside the project.
std::string trace_path(const std::string& file);

enum class Pool {
  one_node,    // the processors are the cores of one node
  many_nodes,  // each processor is a node
};

struct Replayed {
  std::vector<std::int64_t> waits;  // seconds, in the order of the jobs
  std::uint64_t plans = 0;
  std::uint64_t backfilled = 0;
  std::string audit;  // audit of the replica at the end
};
Replayed replay(const std::vector<LogJob>& jobs, std::uint32_t processors, Pool pool,
                const Policy& policy);

// The mean over all jobs of max(1, (wait + run) / max(run, 10 s)).
double mean_bounded_slowdown(const std::vector<LogJob>& jobs,
                             const std::vector<std::int64_t>& waits);

}  // namespace gantry::sched
