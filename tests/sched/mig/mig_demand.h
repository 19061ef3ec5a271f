// Simulates random demand for slices on GPUs with MIG, and measures how much of it is refused.
//
// Jobs arrive as a Poisson process. Each wants one slice for an exponential time of one hour on
// average. The load is the average number of slices in demand divided by the number of slices; the
// unit is the memory slice, of which a GPU has eight. Demand and refused demand are counted in this
// unit too.
//
// Without re-partitioning a job gets a place that is free when it arrives, or is refused at once.
// Its instance is made there and destroyed with it. Nothing waits and nothing is planned.
//
// With re-partitioning plan_mig() is asked after every arrival, end and change. Instances stay
// until a change destroys them; a change takes a node 10 s, one GPU at a time. A job waits for its
// change, its reserved place and its turn, and is refused if it has no slice assigned within
// `patience` after its arrival.
//
// Through the cycle, jobs are queued, planned by schedule() after every arrival and end, and
// placed. Instances are destroyed with their jobs, and the node makes new ones when a job starts.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ctld/sched/gpu/mig_plan.h"

namespace gantry::sched {

enum class DemandMode : std::uint8_t {
  spread,       // without re-partitioning, on the emptiest GPU
  first_fit,    // on the first GPU that fits
  fullest,      // MigOrder, as the planner uses it
  repartition,  // with re-partitioning by plan_mig()
  cycle,        // schedule(), as in the controller: re-partitioning only for jobs that wait
};

enum class KnownEnds : std::uint8_t {
  exact,   // the time limit is the exact run time
  limits,  // limits are between the run time and twice that
  none,    // there are no limits
};

struct DemandSetup {
  std::vector<double> mix;  // the share of each profile of h100_geometry()
  double load = 0.85;
  std::uint32_t nodes = 8, gpus_per_node = 8;
  std::uint32_t jobs = 60'000;  // jobs that are measured, after a tenth as many for the warm-up
  std::uint64_t seed = 1;
  Duration patience{};  // used with re-partitioning
  KnownEnds ends = KnownEnds::exact;
  MigPolicy policy;
};

struct DemandResult {
  double refused = 0;       // share of the demand, 0..1
  double refused_jobs = 0;  // share of the jobs
  std::vector<double> by_profile;
  double allocated = 0;               // share of all slices, averaged over time
  double waited = 0;                  // share of the jobs that got a slice later than at once
  double mean_wait = 0;               // seconds, averaged over all jobs that got a slice
  std::uint64_t changes = 0;          // changes of GPUs
  std::uint64_t started_at_once = 0;  // starts on slices that existed
};

DemandResult random_demand(DemandMode mode, const DemandSetup& setup);

// Returns a mix with as many jobs of each profile, but none with media engines (there are at most
// 64 of those).
std::vector<double> even_jobs();
// Returns a mix in which each profile has the same demand, so that most jobs are small.
std::vector<double> even_demand();

}  // namespace gantry::sched
