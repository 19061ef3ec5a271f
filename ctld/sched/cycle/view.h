// The cluster as a plan sees it. These are plain values: the replica's changes advance them, and a
// plan tries placements in them (trial.h). When the plan is made, all of it is as it was before.
#pragma once

#include <memory>

#include "ctld/sched/nodes/eligible.h"
#include "ctld/sched/nodes/grid.h"
#include "ctld/sched/nodes/running.h"
#include "ctld/sched/place/gpu_scores.h"
#include "ctld/sched/queue/queue.h"
#include "ctld/sched/tenant/charges.h"
#include "ctld/sched/tenant/fairshare.h"
#include "ctld/sched/time/timeline.h"

namespace gantry::sched {

struct View {
  View() : timeline(grid, running, windows) {}
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  TenancyPtr tenancy = std::make_shared<const Tenancy>();
  ShareTree shares;
  Charges charges;  // quota in use
  NamesakesApart apart;
  Grid grid;
  Running running;
  Queue queue;
  Eligible eligible;
  Windows windows;  // advance reservations and maintenance
  Timeline timeline;
  GpuScores scores;
};

}  // namespace gantry::sched
