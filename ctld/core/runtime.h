// Runtime: knowledge of the controller that is lost at a restart and need not survive it:
// connections, what was sent when, who waits for an answer, timers, the last plan's estimates,
// counts. After a restart it is empty. Then nodes register again, and acting on State sends the
// orders that are missing.
//
// Each folder owns its part, which is declared in the folder's memory.h and is opaque here. So a
// handler includes the memory of its own folder, and no other folder can touch it.
#pragma once

#include <cstdint>

#include "common/time/time.h"
#include "ctld/core/state/owned.h"

namespace gantry::core {

struct Stats {
  std::uint64_t submits = 0;
  std::uint64_t events = 0;
  std::uint64_t ended = 0;
  std::uint64_t completed = 0;  // those of `ended` that completed
  std::uint64_t failed = 0;     // those of `ended` that neither completed nor were cancelled
  std::uint64_t cancelled =
      0;  // those of `ended` that were cancelled, and cancelled tasks without a record of their own
  std::uint64_t plans = 0;
  std::uint64_t classes = 0;  // job classes that plans have examined
  Duration plan_last{}, plan_most{},
      plan_all{};                // duration of plans: the last, the longest, the sum
  std::uint64_t backfilled = 0;  // starts of jobs while a job before them in the order was blocked
  std::uint64_t starts = 0;
  std::uint64_t preemptions = 0;
  std::uint64_t plan_drops = 0;  // starts of a plan that no longer fitted
  std::uint64_t reports_ignored = 0;
  std::uint64_t orders = 0;
  std::uint64_t refused = 0;
};

struct NodeLink;
struct NodeLinks;
struct PlanMemory;
struct ViewMemory;
struct Figures;
struct TurnMemory;
struct JobMemory;
struct NodeMemory;
struct TenancyMemory;
struct BudgetMemory;
struct LimitMemory;
struct NeighbourMemory;
struct NotifyMemory;
struct ServiceMemory;

struct Runtime {
  Runtime();  // turn/runtime.cc
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // Several folders read these.
  Owned<NodeLinks> links;   // node_links.h
  Owned<PlanMemory> plan;   // plan_memory.h
  Owned<ViewMemory> views;  // view_memory.h
  Owned<Figures> figures;   // figures.h
  Stats stats;
  bool running = false;  // start() was called
  // Each of these belongs to the folder of the same name.
  Owned<TurnMemory> turn;
  Owned<JobMemory> job;
  Owned<NodeMemory> node;
  Owned<TenancyMemory> tenancy;
  Owned<BudgetMemory> money;
  Owned<LimitMemory> limits;
  Owned<NeighbourMemory> neighbours;
  Owned<NotifyMemory> notify;
  Owned<ServiceMemory> services;
};

}  // namespace gantry::core
