#include "ctld/core/notify/triggers.h"

#include <algorithm>

#include "common/proto/triggers.h"
#include "common/text/hostlist.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_trigger.h"
#include "ctld/core/notify/memory.h"
#include "ctld/core/runtime.h"
#include "ctld/core/state/mutable_state.h"
#include "ctld/core/state/state.h"
#include "ctld/core/turn_out.h"

namespace gantry::core {
namespace {

using proto::TriggerOn;

bool waits_for(const TriggerState& one, TriggerOn on) {
  const auto& list = one.trigger.on;
  return std::find(list.begin(), list.end(), on) != list.end();
}

bool is_of_nodes(TriggerOn on) {
  return on != TriggerOn::fini && on != TriggerOn::time;
}

// The nodes of a trigger: those of its job if it names one, else the nodes that it names, else all.
bool concerns(const State& state, const proto::Trigger& trigger, const Node& node) {
  if (trigger.job) {
    const Job* job = state.jobs.find(*trigger.job);
    if (job == nullptr || !job->active) return false;
    return std::any_of(job->active->nodes.begin(), job->active->nodes.end(),
                       [&](const NodeRun& run) { return run.grant.node == node.id; });
  }
  return trigger.nodes.empty() ||
         std::find(trigger.nodes.begin(), trigger.nodes.end(), node.name) != trigger.nodes.end();
}

void pull(Context& ctx, const TriggerState& one, TriggerOn on, Duration after, std::string argument,
          std::optional<Attempt> attempt) {
  ctx.record(
      event::TriggerPulled{one.trigger.id, on, ctx.now + after, std::move(argument), attempt});
}

std::optional<Instant> time_due(const State& state, const Job& job, const TriggerState& one) {
  if (job.phase != Phase::running || !job.started || !waits_for(one, TriggerOn::time))
    return std::nullopt;
  const auto limit = limit_end(state, job);
  if (!limit || one.spent() || one.timed == job.attempt) return std::nullopt;
  return *limit + one.trigger.offset;
}

NodeTriggerView view_of(const Context& ctx, const Node& node) {
  NodeTriggerView view;
  view.down = node.health != NodeHealth::up;
  view.drained = node.intent != NodeIntent::open && node.jobs.empty();
  const bool idle = !view.down && node.intent == NodeIntent::open && node.jobs.empty();
  if (idle) view.idle = ctx.now;
  return view;
}

struct Edges {  // states that one node has reached since the last look
  NodeId node{};
  std::vector<TriggerOn> on;
};

}  // namespace

bool about_nodes(const proto::Trigger& trigger) {
  return std::any_of(trigger.on.begin(), trigger.on.end(), is_of_nodes);
}

void pull_triggers(Context& ctx, const Job& job) {
  const auto it = ctx.state.triggers.of_job.find(job.id);
  if (it == ctx.state.triggers.of_job.end()) return;
  const std::set<TriggerId> ids = it->second;  // a copy: pulling changes the set
  const std::string argument = std::to_string(job.id.value());
  for (const TriggerId id : ids) {
    const TriggerState& one = ctx.state.triggers.all.at(id);
    if (const auto due = time_due(ctx.state, job, one); due && *due <= ctx.now)
      pull(ctx, one, TriggerOn::time, {}, argument, job.attempt);
    if (job.phase == Phase::ended && waits_for(one, TriggerOn::fini) && !one.spent() &&
        one.ended != job.attempt)
      pull(ctx, one, TriggerOn::fini, std::max(one.trigger.offset, Duration{}), argument,
           job.attempt);
  }
}

void watch_idle(Context& ctx, const TriggerState& one) {
  if (!waits_for(one, TriggerOn::idle)) return;
  const auto& views = ctx.rt.notify->views;
  for (std::uint32_t i = 0; i < views.size(); ++i)
    if (views[i] && views[i]->idle && concerns(ctx.state, one.trigger, ctx.state.nodes[i]))
      ctx.rt.notify->idle_waits.emplace(*views[i]->idle + one.trigger.offset, one.trigger.id,
                                        NodeId(i));
}

// Compares with the state at the last look, because one change may come from several events. The
// first look at a node after a start finds no change except that the node is idle.
void pull_triggers(Context& ctx) {
  if (ctx.touched.trigger_nodes.empty()) return;
  std::vector<NodeId> touched;
  touched.swap(ctx.touched.trigger_nodes);
  std::sort(touched.begin(), touched.end());
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  auto& views = ctx.rt.notify->views;
  views.resize(ctx.state.nodes.size());
  std::vector<Edges> changed;
  for (const NodeId id : touched) {
    const NodeTriggerView now = view_of(ctx, ctx.state.node(id));
    auto& before = views[id.value()];
    Edges edges{id, {}};
    if (before && now.down != before->down)
      edges.on.push_back(now.down ? TriggerOn::down : TriggerOn::up);
    if (before && now.drained && !before->drained) edges.on.push_back(TriggerOn::drained);
    const bool still_idle = before && before->idle && now.idle;
    if (now.idle && !still_idle) edges.on.push_back(TriggerOn::idle);
    const auto since = still_idle ? before->idle : now.idle;
    before = now;
    before->idle = since;
    if (!edges.on.empty()) changed.push_back(std::move(edges));
  }
  if (changed.empty() || ctx.state.triggers.of_nodes.empty()) return;
  const std::set<TriggerId> ids = ctx.state.triggers.of_nodes;
  for (const TriggerId id : ids) {
    const TriggerState& one = ctx.state.triggers.all.at(id);
    std::map<TriggerOn, std::vector<std::string>> hosts;
    for (const Edges& edges : changed) {
      const Node& node = ctx.state.node(edges.node);
      for (const TriggerOn on : edges.on) {
        if (!waits_for(one, on) || !concerns(ctx.state, one.trigger, node)) continue;
        if (on == TriggerOn::idle)
          ctx.rt.notify->idle_waits.emplace(*views[edges.node.value()]->idle + one.trigger.offset,
                                            id, edges.node);
        else
          hosts[on].push_back(node.name);
      }
    }
    for (const auto& [on, names] : hosts)
      if (!one.spent()) pull(ctx, one, on, one.trigger.offset, compress_hostlist(names), {});
  }
}

void pull_reconfigured(Context& ctx) {
  const std::set<TriggerId> ids = ctx.state.triggers.of_nodes;  // a copy: pulling changes the set
  for (const TriggerId id : ids) {
    const TriggerState& one = ctx.state.triggers.all.at(id);
    if (waits_for(one, TriggerOn::reconfig) && !one.spent())
      pull(ctx, one, TriggerOn::reconfig, one.trigger.offset, "*", {});
  }
}

namespace {

// Pulls triggers for nodes that have been idle long enough; all nodes of one moment together.
void pull_idle(Context& ctx) {
  std::map<TriggerId, std::vector<std::string>> hosts;
  auto& waits = ctx.rt.notify->idle_waits;
  while (!waits.empty() && std::get<0>(*waits.begin()) <= ctx.now) {
    const auto [due, id, node] = *waits.begin();
    waits.erase(waits.begin());
    const auto trigger = ctx.state.triggers.all.find(id);
    const auto& view = ctx.rt.notify->views[node.value()];
    if (trigger == ctx.state.triggers.all.end() || !view || !view->idle) continue;
    if (*view->idle + trigger->second.trigger.offset > ctx.now)
      continue;  // the node was busy in between
    hosts[id].push_back(ctx.state.node(node).name);
  }
  for (const auto& [id, names] : hosts) {
    const TriggerState& one = ctx.state.triggers.all.at(id);
    if (!one.spent()) pull(ctx, one, TriggerOn::idle, {}, compress_hostlist(names), {});
  }
}

}  // namespace

void fire_triggers(Context& ctx) {
  pull_idle(ctx);
  while (!ctx.state.triggers.pulls.empty() && ctx.state.triggers.pulls.begin()->first <= ctx.now) {
    const TriggerId id = ctx.state.triggers.pulls.begin()->second;
    const TriggerState& one = ctx.state.triggers.all.at(id);
    ctx.turn.programs.push_back(
        {id, one.trigger.uid, one.trigger.user, one.trigger.program, one.pulls.front().argument});
    ctx.record(event::TriggerFired{id});
  }
}

std::optional<Instant> trigger_due(const Context& ctx, const Job& job) {
  const auto it = ctx.state.triggers.of_job.find(job.id);
  if (it == ctx.state.triggers.of_job.end()) return std::nullopt;
  std::optional<Instant> first;
  for (const TriggerId id : it->second)
    if (const auto due = time_due(ctx.state, job, ctx.state.triggers.all.at(id)))
      if (!first || *due < *first) first = due;
  return first;
}

std::optional<Instant> next_trigger(const Context& ctx) {
  std::optional<Instant> next;
  if (!ctx.state.triggers.pulls.empty()) next = ctx.state.triggers.pulls.begin()->first;
  if (const auto& waits = ctx.rt.notify->idle_waits; !waits.empty())
    if (const Instant due = std::get<0>(*waits.begin()); !next || due < *next) next = due;
  return next;
}

}  // namespace gantry::core
