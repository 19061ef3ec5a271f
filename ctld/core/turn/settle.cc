// The loop of settle(); see settle.h.
#include "ctld/core/settle.h"

#include <set>

#include "ctld/core/context.h"
#include "ctld/core/job/het.h"
#include "ctld/core/job/submit/dependency.h"
#include "ctld/core/limits/limit_gate.h"
#include "ctld/core/money/budget_gate.h"
#include "ctld/core/notify/triggers.h"
#include "ctld/core/state/mutable_state.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/tenants.h"

namespace gantry::core {

namespace {

void settle_touched(Context& ctx) {
  const State& state = ctx.state;
  std::vector<JobId> jobs;
  std::vector<NodeId> nodes;
  while (!ctx.touched.jobs.empty() || !ctx.touched.nodes.empty()) {
    jobs.clear();
    jobs.swap(ctx.touched.jobs);
    nodes.clear();
    nodes.swap(ctx.touched.nodes);
    for (const NodeId node : nodes) {
      sync_node(ctx, node);
      set_timer(ctx, node);
    }
    // Each element touches its array, so the array's waiting elements are looked at once for all of
    // them.
    std::set<JobId> arrays;
    for (const JobId id : jobs) {
      if (state.jobs.find(id) == nullptr) continue;
      settle_dependents(ctx, id);
      if (draw_consequences(ctx, id)) continue;  // the job was touched again
      const Job* job = state.jobs.find(id);
      if (job == nullptr) continue;
      sync_queue(ctx, *job);
      sync_suspension(ctx, *job);
      // The array's limit of running tasks also decides about waiting elements.
      if (job->is_array() && job->tasks->max_running && arrays.insert(id).second)
        for (const JobId element : job->tasks->queued) sync_queue(ctx, state.jobs.at(element));
      pull_triggers(ctx, *job);
      act(ctx, *job);
      set_timer(ctx, *job);
      answer_waits(ctx, id);
      settle_siblings(ctx, id);
    }
  }
}

}  // namespace

void settle(Context& ctx) {
  do settle_touched(ctx);
  while (open_gates(ctx) || open_limits(ctx));
  pull_triggers(ctx);
  fire_triggers(ctx);
  tell_shares(ctx);
}

}  // namespace gantry::core
