// What the scheduler's replica is told: jobs that may start, nodes, partitions. Each call compares
// with what was told last and says only what changed.
#include "ctld/core/eligible.h"
#include "ctld/core/rows.h"
#include "ctld/core/settle.h"

namespace gantry::core {

void sync_queue(Context& ctx, Job& job) {
  const std::uint32_t want = startable(ctx.state, job, ctx.now);
  if (want == 0) {
    if (job.told_startable == 0) return;
    job.told_startable = 0;
    ctx.turn.changes.emplace_back(sched::JobUnqueued{job.id});
    return;
  }
  const std::int64_t priority = priority_of(ctx.state, job);
  if (job.told_startable == want && job.told_priority == priority && job.told_class == job.cls &&
      job.told_since == job.eligible)
    return;
  job.told_startable = want;
  job.told_priority = priority;
  job.told_class = job.cls;
  job.told_since = job.eligible;
  ctx.turn.changes.emplace_back(
      sched::JobQueued{job.id, class_of(ctx.state, job), priority, job.eligible, want});
  ctx.turn.schedule = true;
}

bool available(const Context& ctx, const Node& node) {
  return node.declared != nullptr && node.health == NodeHealth::up &&
         node.intent == NodeIntent::open && ctx.link(node.id).session != 0;
}

sched::NodeChanged node_view(const Context& ctx, const Node& node) {
  sched::NodeChanged view;
  view.node = node.id;
  view.name = node.name;
  view.available = available(ctx, node);
  view.cpus = node.cpus;
  view.sockets = std::max(1u, node.facts.sockets);
  if (node.declared == nullptr) return view;
  view.memory = node.declared->memory;
  view.scratch = node.declared->scratch;
  view.gpus = node.declared->gpus;
  view.features = node.declared->features;
  return view;
}

void sync_node(Context& ctx, NodeId id) {
  if (!ctx.rt.running) return;
  sched::NodeChanged view = node_view(ctx, ctx.state.node(id));
  sched::NodeChanged& told = ctx.rt.node_views.at(id.value());
  if (told.available == view.available && told.sockets == view.sockets) return;
  if (told.sockets != view.sockets) ctx.rt.fits.clear();
  if (view.available) ctx.turn.schedule = true;
  told = view;
  ctx.turn.changes.emplace_back(std::move(view));
}

sched::PartitionChanged partition_view(const Partition& partition) {
  sched::PartitionChanged view;
  view.partition = partition.id;
  view.name = partition.name;
  view.up = partition.up();
  view.nodes = partition.nodes;
  if (partition.declared == nullptr) return view;
  view.priority = partition.declared->priority;
  view.default_memory_per_cpu = partition.declared->default_memory_per_cpu.value_or(0);
  view.exclusive_nodes = partition.declared->exclusive_nodes;
  return view;
}

sched::JobPlaced placed_view(const State& state, const Job& job) {
  sched::JobPlaced view;
  view.job = job.id;
  for (const NodeRun& run : job.active->nodes)
    if (run.state != RunState::released) view.grants.push_back(run.grant);
  view.exclusive = job.active->exclusive;
  if (const auto limit = time_limit_of(state, job))
    view.ends_by = job.started.value_or(job.active->placed) + *limit;
  return view;
}

}  // namespace gantry::core
