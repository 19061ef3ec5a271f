// Changes for the scheduler's replica: jobs that may start, nodes, partitions. Each call compares
// with what the scheduler was told last and tells only what has changed.
#include "ctld/core/context.h"
#include "ctld/core/job/rows.h"
#include "ctld/core/job/subject.h"
#include "ctld/core/limits/limit_gate.h"
#include "ctld/core/money/budget_gate.h"
#include "ctld/core/neighbours/apart.h"
#include "ctld/core/node_links.h"
#include "ctld/core/plan_memory.h"
#include "ctld/core/resources/features.h"
#include "ctld/core/resources/gpus.h"
#include "ctld/core/runtime.h"
#include "ctld/core/settle.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/multifactor.h"
#include "ctld/core/tenancy/tenants.h"
#include "ctld/core/turn_out.h"
#include "ctld/core/view_memory.h"

namespace gantry::core {

void sync_queue(Context& ctx, const Job& job) {
  std::uint32_t want = startable(ctx, job);
  if (want == 0) {
    drop_gate(ctx, job.id);
    drop_claim(ctx, job.id);
    drop_limit(ctx, job.id);
  } else if (limited(ctx, job)) {
    drop_gate(ctx, job.id);
    want = 0;
  } else if (gated(ctx, job)) {
    want = 0;
  }
  if (want == 0) {
    if (ctx.rt.plan->marks.at(job.id).told.startable == 0) return;
    ctx.rt.plan->marks.edit(job.id).told.startable = 0;
    ctx.turn.changes.emplace_back(sched::JobUnqueued{job.id});
    return;
  }
  const std::int64_t priority = priority_now(ctx, job);
  const Rank rank = rank_now(ctx, job);
  const Told& last = ctx.rt.plan->marks.at(job.id).told;
  if (last.startable == want && last.priority == priority && last.cls == job.cls &&
      last.since == job.eligible && last.rank == rank.value)
    return;
  ctx.rt.plan->marks.edit(job.id).told = {want,         rank.value, priority,
                                          job.eligible, job.cls,    rank.raised};
  ctx.turn.schedule = true;
  if (ctx.rt.running) ctx.turn.changes.emplace_back(queued_view(ctx, job));
}

sched::JobsQueued::Job queued_facts(const Context& ctx, const Job& job) {
  const Told& told = ctx.rt.plan->marks.at(job.id).told;
  return {job.id,
          told.priority,
          told.since,
          told.startable,
          told.rank,
          job.share,
          told.raised,
          own_priority_of(ctx.state, job),
          namesake_of(ctx.state, job)};
}

sched::JobQueued queued_view(const Context& ctx, const Job& job) {
  const sched::JobsQueued::Job f = queued_facts(ctx, job);
  return {
      f.job,    class_of(ctx.state, job), f.priority, f.queued_since, f.startable, f.rank, f.share,
      f.raised, f.own_priority,           f.namesake};
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
  // The node reported this number, and the scheduler walks over sockets, so it is at most the
  // number of cores.
  view.sockets = std::clamp(node.facts.sockets, 1u,
                            std::max(1u, static_cast<std::uint32_t>(node.cpus.size())));
  if (node.declared == nullptr) return view;
  view.memory = node.declared->memory;
  view.scratch = node.declared->scratch;
  view.devices = gpus_for_jobs(node);
  view.gpus = whole_gpus(view.devices);
  view.gpus_when_well = gpus_when_well(node);
  view.geometries = node.facts.gpus.geometries;
  view.gpu_sharing = shares_gpus(node);
  for (const GresCount& g : node.gres) {
    const auto& names = ctx.state.gres_names;
    const auto at = std::lower_bound(names.begin(), names.end(), g.name) - names.begin();
    view.gres.at(static_cast<std::size_t>(at)) = static_cast<std::int16_t>(g.count);
  }
  view.features = matched_features(node);
  view.gpu_model = node.declared->gpu_model;
  const auto& compiled = ctx.state.tenancy.compiled.nodes;
  if (node.id.value() >= compiled.size()) return view;
  const CompiledNode& place = compiled[node.id.value()];
  view.flavor = place.flavor;
  view.domains = place.domains;
  view.taints = place.taints;
  view.gpu_jobs_only = place.gpu_jobs_only;
  view.spread = place.spread;
  return view;
}

void sync_node(Context& ctx, NodeId id) {
  if (!ctx.rt.running) return;
  sched::NodeChanged view = node_view(ctx, ctx.state.node(id));
  sched::NodeChanged& told = ctx.rt.views->nodes.at(id.value());
  const bool same_gpus = told.devices == view.devices && told.geometries == view.geometries &&
                         told.gpu_sharing == view.gpu_sharing && told.gpus == view.gpus;
  const bool same_features = told.features == view.features;
  if (told.available == view.available && told.sockets == view.sockets && same_gpus &&
      same_features)
    return;
  if (told.sockets != view.sockets || !same_gpus || !same_features) ctx.rt.views->fits.clear();
  if (view.available) ctx.turn.schedule = true;
  told = view;
  ctx.turn.changes.emplace_back(std::move(view));
}

sched::PartitionChanged partition_view(const State& state, const Partition& partition) {
  sched::PartitionChanged view;
  view.partition = partition.id;
  view.name = partition.name;
  view.up = partition.up();
  view.nodes = partition.nodes;
  view.gres_names = state.gres_names;
  view.quota_node = quota_node_of(state, partition.id).value_or(sched::kNoIndex);
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
  view.partition = class_of(state, job).partition;
  view.priority_class = class_of(state, job).priority_class;
  view.rank = rank_of(state, job, Instant{}).value;
  view.share = job.share;
  view.started = job.active->placed;
  view.checkpoint = job.active->checkpoint;
  view.preemptions = job.preemptions;
  view.requeue = job.may_requeue;
  view.sharing = class_of(state, job).shape.sharing;
  view.anti_affinity = class_of(state, job).shape.anti_affinity;
  view.namesake = namesake_of(state, job);
  view.ends_by = limit_end(state, job);
  // A preempted job is leaving. Other finishing jobs were reported in another way, or end by
  // themselves.
  if (job.phase != Phase::finishing || !job.active->finish->grace) return view;
  view.leaving = true;
  const Instant gone = job.active->finish->since + *job.active->finish->grace;
  view.ends_by = std::min(view.ends_by.value_or(gone), gone);
  return view;
}

namespace {

void view_partition(Context& ctx, const Partition& p) {
  ctx.rt.views->partitions.push_back(partition_view(ctx.state, p));
  auto& nodes = ctx.rt.views->partition_nodes.emplace_back();
  for (const NodeId id : p.nodes) nodes.push_back(&ctx.rt.views->nodes[id.value()]);
}

}  // namespace

void make_views(Context& ctx) {
  ctx.rt.views->nodes.clear();
  ctx.rt.views->partitions.clear();
  ctx.rt.views->partition_nodes.clear();
  for (const Node& node : ctx.state.nodes) ctx.rt.views->nodes.push_back(node_view(ctx, node));
  for (const Partition& p : ctx.state.partitions) view_partition(ctx, p);
}

void add_partition_view(Context& ctx, const Partition& partition) {
  if (!ctx.rt.running) return;  // make_views() tells them later
  view_partition(ctx, partition);
  ctx.turn.changes.emplace_back(ctx.rt.views->partitions.back());
}

}  // namespace gantry::core
