// Random demand for slices on GPUs with MIG, and how much of it is refused.
//
// Jobs arrive as a Poisson process and each wants one slice for an exponential time of one hour on
// average. Load = slices asked for at a time, on average, over the slices there are; slices are
// memory slices, of which a GPU has eight. Demand and refused demand are counted in them too.
//
// Without re-partitioning: a job gets a place that is free when it comes, or is refused at once;
// its instance is made there and goes with it. Nothing waits, nothing is planned. (Instances of
// jobs that have ended count as free places: they go with their jobs.)
//
// With re-partitioning: plan_mig() is asked after every arrival, end and change. Instances stay
// until a change destroys them; a change takes a node 10 s, one GPU at a time. A job waits for its
// change, its reserved place and its turn, and is refused when it has no slice assigned within
// `patience` of its arrival.
//
// Through the cycle: jobs are queued, planned by schedule() after every arrival and end, and
// placed. Their instances go with them, and the node makes new ones at a job's start.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ctld/sched/gpu/mig_plan.h"

namespace gantry::sched {

enum class DemandMode : std::uint8_t {
  spread,       // without re-partitioning, the emptiest GPU first
  first_fit,    // the first GPU that fits
  fullest,      // MigOrder, which the planner uses
  repartition,  // with, plan_mig()
  cycle,        // schedule(), as the controller: without, if nobody waits; else with
};

enum class KnownEnds : std::uint8_t {
  exact,   // the time limit is the run time
  limits,  // between the run time and twice that
  none,    // there are no limits
};

struct DemandSetup {
  std::vector<double> mix;  // by profile of h100_geometry()
  double load = 0.85;
  std::uint32_t nodes = 8, gpus_per_node = 8;
  std::uint32_t jobs = 60'000;  // measured, after a tenth as many for warming up
  std::uint64_t seed = 1;
  Duration patience{};  // with re-partitioning
  KnownEnds ends = KnownEnds::exact;
  MigPolicy policy;
};

struct DemandResult {
  double refused = 0;       // part of the demand, 0..1
  double refused_jobs = 0;  // part of the jobs
  std::vector<double> by_profile;
  double allocated = 0;               // part of all slices, over time
  double waited = 0;                  // part of the jobs that got a slice but not at once
  double mean_wait = 0;               // seconds, of all that got a slice
  std::uint64_t changes = 0;          // of GPUs
  std::uint64_t started_at_once = 0;  // on slices that existed
};

DemandResult random_demand(DemandMode mode, const DemandSetup& setup);

// As many jobs of each profile, but none with the media engines (there are 64 of those at most).
std::vector<double> even_jobs();
// Each profile asks for as much, so that most jobs are small.
std::vector<double> even_demand();

}  // namespace gantry::sched
