// Replays a workload log (Standard Workload Format) through the shipped scheduler, under a virtual
// clock: what a controller would do with the same jobs, without any of its I/O.
//
// Within one moment things happen as in pyss, the simulator that made the reference results:
// submissions, then the jobs that end at their limit all at once, then those that end early one by
// one with a plan after each. (Its forecast has the former free before their end is reported.)
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
  std::int64_t logged_wait = 0;  // field 3: what the log's own scheduler did, seconds
};

// Jobs by submit time, then id; nullopt if the file is not there. Reads *.gz through zcat.
std::optional<std::vector<LogJob>> read_swf(const std::string& path);

// The text of a file; *.gz through zcat.
std::string read_trace(const std::string& path);

// Where the traces lie when they are there: beside the project.
std::string trace_path(const std::string& file);

enum class Pool {
  one_node,    // processors are the cores of one node
  many_nodes,  // each processor is a node of its own
};

struct Replayed {
  std::vector<std::int64_t> waits;  // seconds, in the order of the jobs
  std::uint64_t plans = 0;
  std::uint64_t backfilled = 0;
  std::string audit;  // of the replica at the end
};
Replayed replay(const std::vector<LogJob>& jobs, std::uint32_t processors, Pool pool,
                const Policy& policy);

// max(1, (wait + run) / max(run, 10 s)), mean over all jobs.
double mean_bounded_slowdown(const std::vector<LogJob>& jobs,
                             const std::vector<std::int64_t>& waits);

}  // namespace gantry::sched
