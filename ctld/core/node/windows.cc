#include "ctld/core/node/windows.h"

#include <algorithm>

#include <fmt/core.h>

#include "common/assert.h"
#include "common/proto/reservation.h"
#include "common/text/text.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_tenancy.h"
#include "ctld/core/node/memory.h"
#include "ctld/core/runtime.h"
#include "ctld/core/settle.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/reservations.h"
#include "ctld/core/tenancy/tenants.h"
#include "ctld/core/turn_out.h"
#include "ctld/sched/queue/constraint.h"

namespace gantry::core {
namespace {

// How often to check reservations whose nodes are replaced, or that end when they are idle.
constexpr Duration kLook = seconds(5);

bool active(const Context& ctx, const AdvanceReservation& r) {
  return r.from <= ctx.now && ctx.now < r.until;
}

bool looked_at(const Context& ctx, const AdvanceReservation& r) {
  return r.replacement != proto::NodeReplacement::none || (r.purge_after && active(ctx, r));
}

bool named_by_a_job(const State& state, const std::string& name) {
  bool found = false;
  state.jobs.walk(JobId{}, [&](const Job& job) {
    if (job.phase != Phase::ended)
      each_window_of(state, job, [&](const std::string& one) { found = found || one == name; });
    return !found;
  });
  return found;
}

// True if no job has named the active reservation for as long as it may be idle.
bool idle_for_too_long(Context& ctx, const AdvanceReservation& r) {
  auto& idle = ctx.rt.node->windows_idle;
  if (!r.purge_after || !active(ctx, r) || named_by_a_job(ctx.state, r.name)) {
    idle.erase(r.name);
    return false;
  }
  // The idle time is kept only in memory: a restarted controller counts from zero.
  const Instant since = idle.try_emplace(r.name, ctx.now).first->second;
  return since + *r.purge_after <= ctx.now;
}

// The present occurrence is over: the next one follows, or the reservation is removed.
void end_occurrence(Context& ctx, const std::string& name, std::string_view why) {
  ctx.rt.node->windows_idle.erase(name);
  AdvanceReservation r = ctx.state.tenancy.reservations.at(name);
  if (!r.repeats) {
    ctx.note(fmt::format("reservation {} is over{}", name, why));
    ctx.record(event::ReservationRemoved{name, {}});
    tell_window(ctx, name);
    return;
  }
  do {
    r.repeats = next_of(*r.repeats);
    const TimeSpan next = occurrence_of(*r.repeats);
    r.from = next.from;
    r.until = next.until;
  } while (r.until <= ctx.now);
  ctx.note(fmt::format("reservation {} is over{}, and begins again at {}", name, why,
                       format_time(r.from)));
  ctx.record(event::ReservationSet{std::move(r)});
  tell_window(ctx, name);
}

bool free_node(const Context& ctx, const AdvanceReservation& r, const Node& node) {
  if (!available(ctx, node) || node.declared == nullptr) return false;
  if (std::binary_search(r.nodes.begin(), r.nodes.end(), node.id)) return false;
  return jobs_beyond(ctx.state, node.id, std::max(r.from, ctx.now)).empty();
}

// Nodes that may replace others, in the order of the configuration.
std::vector<NodeId> free_nodes(const Context& ctx, const AdvanceReservation& r, std::size_t most) {
  std::vector<NodeId> out;
  const auto constraint = sched::parse_constraint(r.constraint);
  const Partition* partition =
      r.partition.empty() ? nullptr : ctx.state.partition_named(r.partition);
  if (!constraint || (partition == nullptr && !r.partition.empty())) return out;
  const auto rivals = rivals_of(ctx.state, r);
  for (const NodeId id : partition == nullptr ? ctx.state.node_order : partition->nodes) {
    if (out.size() == most) break;
    const Node& node = ctx.state.node(id);
    if (free_node(ctx, r, node) && holder_of(id, rivals) == nullptr &&
        sched::matches(*constraint, node.declared->features))
      out.push_back(id);
  }
  return out;
}

// The reservation's nodes to replace: those out of service; and, if it asks for that, those in use
// by jobs while it is active.
std::vector<NodeId> nodes_to_replace(const Context& ctx, const AdvanceReservation& r) {
  std::vector<NodeId> out;
  const bool used = r.replacement == proto::NodeReplacement::used && active(ctx, r);
  for (const NodeId id : r.nodes) {
    const Node& node = ctx.state.node(id);
    if (!available(ctx, node) || (used && !node.jobs.empty())) out.push_back(id);
  }
  return out;
}

void replace_nodes(Context& ctx, const std::string& name) {
  const AdvanceReservation& now = ctx.state.tenancy.reservations.at(name);
  if (now.replacement == proto::NodeReplacement::none) return;
  const std::vector<NodeId> old = nodes_to_replace(ctx, now);
  if (old.empty()) return;
  const std::vector<NodeId> fresh = free_nodes(ctx, now, old.size());
  if (fresh.empty()) return;
  AdvanceReservation r = now;
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    std::replace(r.nodes.begin(), r.nodes.end(), old[i], fresh[i]);
    ctx.note(fmt::format("reservation {} has node {} in the place of {}", name,
                         ctx.state.node(fresh[i]).name, ctx.state.node(old[i]).name));
  }
  std::sort(r.nodes.begin(), r.nodes.end());
  ctx.record(event::ReservationSet{std::move(r)});
  tell_window(ctx, name);
}

}  // namespace

bool takes_of(const AdvanceReservation& r, const TimeSpan& span) {
  if (r.from < span.until && span.from < r.until) return true;
  return r.repeats && ever_meets(next_of(*r.repeats), span);
}

bool share_time(const AdvanceReservation& a, const AdvanceReservation& b) {
  if (takes_of(a, {b.from, b.until}) || takes_of(b, {a.from, a.until})) return true;
  return a.repeats && b.repeats && ever_meet(next_of(*a.repeats), next_of(*b.repeats));
}

std::vector<const AdvanceReservation*> rivals_of(const State& state, const AdvanceReservation& r) {
  std::vector<const AdvanceReservation*> out;
  for (const auto& [name, other] : state.tenancy.reservations)
    if (name != r.name && share_time(other, r)) out.push_back(&other);
  return out;
}

const AdvanceReservation* holder_of(NodeId node,
                                    const std::vector<const AdvanceReservation*>& rivals) {
  for (const AdvanceReservation* one : rivals)
    if (std::binary_search(one->nodes.begin(), one->nodes.end(), node)) return one;
  return nullptr;
}

std::vector<JobId> jobs_beyond(const State& state, NodeId node, Instant from) {
  std::vector<JobId> out;
  for (const JobId id : state.node(node).jobs) {
    const Job& job = state.jobs.at(id);
    const auto end = limit_end(state, job);
    if (job.phase != Phase::finishing && (!end || *end > from)) out.push_back(id);
  }
  return out;
}

void tell_window(Context& ctx, const std::string& name) {
  look_at_waiting(ctx, name);
  const auto it = ctx.state.tenancy.reservations.find(name);
  sched::ReservationChanged change;
  if (it != ctx.state.tenancy.reservations.end()) {
    change = reservation_view(ctx.state, it->second);
  } else {
    change.name = name;
    change.removed = true;
  }
  ctx.turn.changes.emplace_back(std::move(change));
  ctx.turn.schedule = true;
  ctx.rt.node->window_due = next_window(ctx);
}

std::optional<Instant> next_window(const Context& ctx) {
  std::optional<Instant> next;
  for (const auto& [name, r] : ctx.state.tenancy.reservations) {
    Instant at = r.from > ctx.now ? r.from : r.until;
    if (looked_at(ctx, r)) at = std::min(at, ctx.now + kLook);
    if (!next || at < *next) next = at;
  }
  return next;
}

void run_windows(Context& ctx) {
  std::vector<std::string> over, idle, others;
  for (const auto& [name, r] : ctx.state.tenancy.reservations)
    (r.until <= ctx.now ? over : idle_for_too_long(ctx, r) ? idle : others).push_back(name);
  for (const std::string& name : over) end_occurrence(ctx, name, "");
  for (const std::string& name : idle) end_occurrence(ctx, name, ", since no job names it");
  for (const std::string& name : others) replace_nodes(ctx, name);
  ctx.turn.schedule = true;
  ctx.rt.node->window_due = next_window(ctx);
}

}  // namespace gantry::core
