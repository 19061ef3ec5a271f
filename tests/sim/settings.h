// The decisions of a seed at the beginning: the cluster, its configuration, how bad the world is,
// and which kinds of faults there are. Each history has its own mix, so that rare combinations
// occur and single faults are seen undisturbed.
#pragma once

#include <cstdint>

#include "config/config.h"
#include "ctld/sched/controller_policy.h"
#include "tests/sim/random.h"

namespace gantry::sim {

struct LinkQuality {
  std::uint64_t lose = 0;   // per mille of messages that are lost
  std::uint64_t twice = 0;  // per mille that arrive twice
  std::uint64_t late = 0;   // per mille that take up to `latest`, and so overtake each other
  Duration usual = milliseconds(2);
  Duration latest = seconds(5);
};

// The mean time between two faults of a kind; zero means never.
struct FaultRates {
  Duration node_daemon{}, node_stop{}, machine{}, shim{}, cut{}, client_cut{};
  Duration controller{}, commit{}, fold{}, disk_full{}, declared_dead{};
  Duration gpu{};
  Duration controller_pause{}, machine_sleep{};
};

struct Settings {
  Config config;
  LinkQuality nodes, clients;
  FaultRates faults;
  std::uint64_t slow_start = 0;     // per mille of starts that take longer than allowed
  std::uint64_t failing_start = 0;  // per mille of starts that fail
  std::uint64_t dies_at_start = 0;  // per mille of starts at which the machine loses its power
  std::uint64_t late_plan = 0;      // per mille of plans that are seconds old when they arrive
  std::uint64_t plan_attempts = 100'000;
  std::uint32_t plan_starts = 4096;
  std::size_t clients_count = 3;
  std::size_t jobs = 80;           // number of submits; an array counts as one
  Duration trouble = minutes(30);  // how long faults and submits go on

  bool tenants = false;             // documents, quota, classes; see tenants.h
  bool changes = false;             // changes of what waiting jobs ask for, and of their order
  bool gangs = false;               // nodes of eight GPUs with quota, and jobs of 8 to 32 GPUs
  bool gpus = false;                // devices, slices, parts, their faults; see gpus.h
  std::uint64_t refused_start = 0;  // per mille of starts that fail by the owner's fault
  // The scheduler's policy; only histories with tenants vary it.
  bool keep_reservations = true;
  std::uint32_t reservations = 1, ahead = sched::kPlannedAhead, estimates = 0;
  Duration everything = sched::kLookAtEverything;
};

// The options of a history.
struct With {
  bool tenants = false, gpus = false, balance = false, changes = false, gangs = false;
  bool pauses = false;  // pauses of the controller's process and of machines
};
Settings settings_of(Random& random, With with);

}  // namespace gantry::sim
