// A plan is a proposal. Each start is checked again against the present State, in the plan's order.
// It becomes fact (JobPlaced), or it is dropped and counted; then the job stays queued, and a later
// plan sees what has changed. Verdicts and estimates are taken without a check.
#include <algorithm>
#include <set>
#include <span>

#include <fmt/core.h>

#include "config/config.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_attempt.h"
#include "ctld/core/event/events_job.h"
#include "ctld/core/event/events_service.h"
#include "ctld/core/figures.h"
#include "ctld/core/handler.h"
#include "ctld/core/job/subject.h"
#include "ctld/core/limits/limit_gate.h"
#include "ctld/core/limits/limits.h"
#include "ctld/core/money/budget_gate.h"
#include "ctld/core/money/ledger.h"
#include "ctld/core/money/report_labels.h"
#include "ctld/core/plan_memory.h"
#include "ctld/core/resources/gpus.h"
#include "ctld/core/resources/gres.h"
#include "ctld/core/runtime.h"
#include "ctld/core/settle.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/memory.h"
#include "ctld/core/tenancy/queues.h"
#include "ctld/core/tenancy/quota_alerts.h"
#include "ctld/core/tenancy/secrets.h"
#include "ctld/core/tenancy/shares.h"
#include "ctld/core/tenancy/tenants.h"
#include "ctld/core/turn/dispatch.h"
#include "ctld/core/turn/memory.h"
#include "ctld/core/turn/waits.h"
#include "ctld/core/turn_out.h"

namespace gantry::core {
namespace {

// IPv4 addresses of one node, see noded/network/address.h.
constexpr std::size_t kMostSlots = 1'024;

// Why the pool of the node excludes the job, or nullopt. Documents may have changed since the plan.
std::optional<std::string> pool_objection(const Context& ctx, const Node& node,
                                          const Partition& partition, const JobShape& shape) {
  const auto& nodes = ctx.state.tenancy.compiled.nodes;
  if (node.id.value() >= nodes.size()) return std::nullopt;
  const CompiledNode& place = nodes[node.id.value()];
  if (!place.tenant.empty() && place.tenant != tenant_name_of(ctx.state, partition))
    return fmt::format("{} is tenant {}'s own", node.name, place.tenant);
  if (place.gpu_jobs_only && shape.gpus_per_node + shape.gpu_share == 0)
    return fmt::format("{} is for jobs with GPUs", node.name);
  for (const std::string& taint : place.taints)
    if (std::find(shape.tolerations.begin(), shape.tolerations.end(), taint) ==
        shape.tolerations.end())
      return fmt::format("{} has the taint {}", node.name, taint);
  return std::nullopt;
}

// Why the node cannot give these grants, or nullopt.
std::optional<std::string> objection(const Context& ctx, const Partition& partition,
                                     const JobShape& shape, bool exclusive,
                                     const std::vector<sched::NodeGrant>& grants) {
  if (grants.empty() || grants.size() < shape.min_nodes) return "too few nodes";
  for (std::size_t i = 0; i < grants.size(); ++i) {
    const sched::NodeGrant& g = grants[i];
    if (g.node.value() >= ctx.state.nodes.size()) return "an unknown node";
    const Node& node = ctx.state.node(g.node);
    for (std::size_t k = 0; k < i; ++k)
      if (grants[k].node == g.node) return fmt::format("{} twice", node.name);
    if (!available(ctx, node)) return fmt::format("{} is not available", node.name);
    if (std::find(partition.nodes.begin(), partition.nodes.end(), g.node) == partition.nodes.end())
      return fmt::format("{} is not in partition {}", node.name, partition.name);
    if (auto why = pool_objection(ctx, node, partition, shape)) return why;
    if (node.exclusive_jobs > 0 || (exclusive && !node.jobs.empty()))
      return fmt::format("{} is taken exclusively", node.name);
    if (g.cpus.empty()) return fmt::format("no core of {}", node.name);
    for (std::size_t c = 0; c < g.cpus.size(); ++c) {
      if (c > 0 && g.cpus[c] <= g.cpus[c - 1]) return "cores out of order";
      if (!std::binary_search(node.cpus.begin(), node.cpus.end(), g.cpus[c]))
        return fmt::format("{} has no core {}", node.name, g.cpus[c]);
      if (g.cpus[c] < node.cpu_taken.size() && node.cpu_taken[g.cpus[c]])
        return fmt::format("core {} of {} is taken", g.cpus[c], node.name);
    }
    if (g.memory < 0 || node.memory_taken + g.memory > node.declared->memory)
      return fmt::format("{} has too little memory free", node.name);
    if (g.scratch < 0 || node.scratch_taken + g.scratch > node.declared->scratch)
      return fmt::format("{} has too little scratch free", node.name);
    if (g.io != shape.io_per_node || g.net != shape.net_per_node)
      return "other than the io and net that are asked";
    if (auto why = gpu_objection(node, g, partition.id)) return why;
    if (shape.gpu_share > 0 &&
        (g.devices.size() != 1 || g.devices[0].profile.has_value() == shape.gpu_slice.empty() ||
         g.devices[0].of_device() != DevicePart{shape.gpu_share}))
      return "other than the part of a GPU that is asked";
    if (auto why = gres_objection(node, g, shape)) return why;
  }
  return std::nullopt;
}

// Why the tenant may not have these grants now, or nullopt.
std::optional<std::string> quota_objection(const Context& ctx, const Partition& partition,
                                           const std::vector<sched::NodeGrant>& grants) {
  const auto node = quota_node_of(ctx.state, partition.id);
  if (!node) return std::nullopt;
  const sched::QuotaNeed need = quota_need(ctx.state, grants);
  for (const sched::NodeGrant& grant : grants)
    if (quota_need(ctx.state, grant).flavor != need.flavor) return "nodes of several flavors";
  const sched::QuotaFit fit = ctx.rt.tenancy->quota->fit(*node, need);
  if (fit.fits) return std::nullopt;
  return fmt::format("tenant {} would use {} of {}, and may use {}", partition.payer(),
                     fit.would_use,
                     kResourceTable[static_cast<std::size_t>(fit.cell->resource)].name, fit.limit);
}

void drop(Context& ctx, JobId job, const std::string& why) {
  ++ctx.rt.stats.plan_drops;
  ctx.note(fmt::format("plan: start of job {} dropped: {}", job.value(), why));
  // No change is needed for the scheduler, because its replica never had this start.
  ctx.turn.schedule = true;
}

// The smallest number below kMostSlots that no other job on the node has as its slot; nullopt if
// there is none.
std::optional<std::uint32_t> free_slot(const State& state, const Node& node) {
  std::vector<bool> taken(kMostSlots);
  for (const JobId id : node.jobs) {
    const Job* job = state.jobs.find(id);
    if (job == nullptr || !job->placed()) continue;
    for (const NodeRun& run : job->active->nodes)
      if (run.grant.node == node.id && run.grant.slot) taken.at(*run.grant.slot) = true;
  }
  const auto free = std::find(taken.begin(), taken.end(), false);
  if (free == taken.end()) return std::nullopt;
  return static_cast<std::uint32_t>(free - taken.begin());
}

// Gives a replica the lowest port that no other replica has on its machine. Nodes with the same
// address are one machine.
void give_door(Context& ctx, JobId id) {
  if (!ctx.state.services.replicas.contains(id)) return;
  const auto address_of = [&](const Job& job) {
    const Node& node = ctx.state.node(job.active->nodes.front().grant.node);
    const std::string& address = node.facts.address.empty() ? node.name : node.facts.address;
    return address.substr(0, address.rfind(':'));
  };
  const std::string own = address_of(ctx.state.jobs.at(id));
  std::set<std::uint32_t> taken;
  for (const auto& [other, of] : ctx.state.services.replicas) {
    const Job* job = ctx.state.jobs.find(other);
    if (other != id && job != nullptr && job->placed() && address_of(*job) == own)
      taken.insert(job->active->door);
  }
  std::uint32_t port = ctx.config.controller.service_port;
  while (taken.contains(port)) ++port;
  ctx.record(event::DoorGiven{id, port});
}

// Places the job. The scheduler does not know the job under its old id any more.
void place(Context& ctx, JobId id, std::vector<sched::NodeGrant>&& grants, bool exclusive) {
  const Attempt attempt(ctx.state.jobs.at(id).attempt.value() + 1);
  UseOfJob use = use_of_job(ctx.state, ctx.state.jobs.at(id), grants);
  const double charge = charge_of(ctx.state, grants) * static_cast<double>(use.factor) /
                        static_cast<double>(tenancy::kUsageFactorUnit);
  auto waits = waits_of(ctx, ctx.state.jobs.at(id));
  if (ctx.config.controller.job_networks)
    for (sched::NodeGrant& grant : grants)
      grant.slot = free_slot(ctx.state, ctx.state.node(grant.node));
  ctx.rt.turn->waits_since.erase(id);
  Holding holding = holding_of(ctx.state, grants, exclusive);
  std::string labels =
      reported_labels(ctx.state, ctx.state.jobs.at(id), ctx.config.controller.report_labels);
  ctx.record(event::JobPlaced{id, attempt, std::move(grants), exclusive, charge, std::move(waits),
                              plan_of(ctx.state, ctx.state.jobs.at(id), ctx.now),
                              std::move(holding.items), std::move(holding.held), std::move(use),
                              std::move(labels)});
  take_secrets(ctx, id);
  give_door(ctx, id);
  ++ctx.rt.stats.starts;
  const Job& job = ctx.state.jobs.at(id);
  for (const NodeRun& run : job.active->nodes) use_quota(ctx, job, run.grant);
  if (const auto node = quota_node_of(ctx.state, class_of(ctx.state, job).partition))
    quota_taken(ctx, *node, quota_need(ctx.state, job.active->nodes.front().grant).flavor);
  budget_taken(ctx, job);
  if (ctx.rt.plan->marks.at(id).told.startable != 0) {
    ctx.rt.plan->marks.edit(id).told.startable = 0;
    ctx.turn.changes.emplace_back(sched::JobUnqueued{id});
  }
  ctx.turn.changes.emplace_back(placed_view(ctx.state, job));
}

// Sets the limit of a job that allows a lower one: the time for which its place is free, at most
// what its deadline leaves.
void lower_limit(Context& ctx, JobId id, const sched::Start& start) {
  if (!start.limit) return;
  const Job& job = ctx.state.jobs.at(id);
  std::optional<Duration> limit = *start.limit;
  if (job.deadline)
    limit = std::min(limit.value_or(*job.deadline - ctx.now), *job.deadline - ctx.now);
  if (limit == time_limit_of(ctx.state, job) || !limit) return;
  event::JobUpdated lower;
  lower.job = id;
  lower.time_limit = limit;
  ctx.record(lower);
}

void apply_start(Context& ctx, sched::Start&& start) {
  const Job* job = ctx.state.jobs.find(start.job);
  if (job == nullptr) return drop(ctx, start.job, "it is gone");
  if (startable(ctx, *job) == 0) return drop(ctx, start.job, "it may not start now");
  if (refused_by_limit(ctx, *job)) {
    ++ctx.rt.stats.plan_drops;
    return;
  }
  const sched::ClassKey& key = class_of(ctx.state, *job);
  const Partition& partition = ctx.state.partition(key.partition);
  if (!partition.up())
    return drop(ctx, start.job, fmt::format("partition {} is down", partition.name));
  const bool exclusive = key.shape.exclusive || partition.declared->exclusive_nodes;
  if (const auto why = objection(ctx, partition, key.shape, exclusive, start.grants))
    return drop(ctx, start.job, *why);
  if (const auto why = quota_objection(ctx, partition, start.grants))
    return drop(ctx, start.job, *why);
  if (refused_by_budget(ctx, start.job, start.grants, exclusive)) {
    ++ctx.rt.stats.plan_drops;
    return;
  }
  drop_claim(ctx, start.job, job->is_array());
  if (!job->is_array()) {
    lower_limit(ctx, start.job, start);
    return place(ctx, start.job, std::move(start.grants), exclusive);
  }
  const JobId array = start.job;
  const std::uint32_t ordinal =
      job->dependencies ? ready_tasks(*job).front() : job->tasks->pending.front();
  const JobId element(ctx.state.last_job.value() + 1);
  ctx.record(event::TaskSplit{array, ordinal, element});
  lower_limit(ctx, element, start);
  place(ctx, element, std::move(start.grants), exclusive);
}

// Counts the quota that earlier components of the same job take while later ones are checked.
class QuotaTrial {
 public:
  explicit QuotaTrial(Context& ctx) : ctx_(ctx) {}
  ~QuotaTrial() {
    for (const auto& [node, need] : taken_) ctx_.rt.tenancy->quota->remove(node, need);
  }
  QuotaTrial(const QuotaTrial&) = delete;
  QuotaTrial& operator=(const QuotaTrial&) = delete;
  void take(const Partition& partition, const std::vector<sched::NodeGrant>& grants) {
    const auto node = quota_node_of(ctx_.state, partition.id);
    if (!node) return;
    taken_.emplace_back(*node, quota_need(ctx_.state, grants));
    ctx_.rt.tenancy->quota->add(*node, taken_.back().second);
  }

 private:
  Context& ctx_;
  std::vector<std::pair<std::uint32_t, sched::QuotaNeed>> taken_;
};

// Why a component cannot start together with those before it, or nullopt.
std::optional<std::string> objection_beside(Context& ctx, const sched::Start& start,
                                            std::set<NodeId>& nodes, QuotaTrial& quota) {
  const Job& job = ctx.state.jobs.at(start.job);
  if (startable(ctx, job) == 0) return "it may not start now";
  if (refused_by_limit(ctx, job)) return "a limit of use is reached";
  const sched::ClassKey& key = class_of(ctx.state, job);
  const Partition& partition = ctx.state.partition(key.partition);
  if (!partition.up()) return fmt::format("partition {} is down", partition.name);
  const bool exclusive = key.shape.exclusive || partition.declared->exclusive_nodes;
  if (auto why = objection(ctx, partition, key.shape, exclusive, start.grants)) return why;
  for (const sched::NodeGrant& g : start.grants)
    if (!nodes.insert(g.node).second)
      return fmt::format("{} is another component's", ctx.state.node(g.node).name);
  if (auto why = quota_objection(ctx, partition, start.grants)) return why;
  quota.take(partition, start.grants);
  return std::nullopt;
}

// Starts all components of a heterogeneous job, or none.
void apply_together(Context& ctx, std::span<sched::Start> starts) {
  const HetPart het = *class_of(ctx.state, ctx.state.jobs.at(starts[0].job)).het;
  if (het.offset != 0 || starts.size() != het.size)
    return drop(ctx, starts[0].job, "a component by itself");
  {
    std::set<NodeId> nodes;
    QuotaTrial quota(ctx);
    for (const sched::Start& start : starts)
      if (const auto why = objection_beside(ctx, start, nodes, quota))
        return drop(ctx, start.job, *why);
  }
  const auto alone = [&](const sched::Start& start) {
    const sched::ClassKey& key = class_of(ctx.state, ctx.state.jobs.at(start.job));
    return key.shape.exclusive || ctx.state.partition(key.partition).declared->exclusive_nodes;
  };
  BudgetSums beside;
  for (const sched::Start& start : starts)
    if (refused_by_budget(ctx, start.job, start.grants, alone(start), &beside)) {
      ++ctx.rt.stats.plan_drops;
      return;
    }
  for (sched::Start& start : starts) {
    lower_limit(ctx, start.job, start);
    place(ctx, start.job, std::move(start.grants), alone(start));
  }
}

// The number of starts from here on that belong together; components follow each other in a plan.
std::size_t together(const State& state, std::span<const sched::Start> starts) {
  const auto het_of = [&](const sched::Start& start) {
    const Job* job = state.jobs.find(start.job);
    return job == nullptr ? std::nullopt : class_of(state, *job).het;
  };
  const auto first = het_of(starts[0]);
  if (!first) return 0;
  std::size_t n = 1;
  while (n < starts.size() && starts[n].job == first->member(first->offset + n)) {
    const auto next = het_of(starts[n]);
    if (!next || next->leader != first->leader) break;
    ++n;
  }
  return n;
}

std::string_view to_text(sched::PreemptWhy why) {
  switch (why) {
    case sched::PreemptWhy::by_class: return "";
    case sched::PreemptWhy::reclaim: return ", which takes back its quota";
    case sched::PreemptWhy::by_share: return ", which borrows less";
  }
  return "";
}

// Ends the victim. It keeps its nodes until they are released; the scheduler keeps them for the job
// for which the victim was preempted.
void apply_preempt(Context& ctx, const sched::Preempt& p) {
  const Job* victim = ctx.state.jobs.find(p.victim);
  const Job* other = ctx.state.jobs.find(p.for_job);
  const bool runs =
      victim != nullptr && (victim->phase == Phase::starting || victim->phase == Phase::running);
  if (!runs || other == nullptr || other->phase != Phase::queued) {
    ++ctx.rt.stats.plan_drops;
    return ctx.note(fmt::format("plan: job {} is not preempted for job {}: {}", p.victim.value(),
                                p.for_job.value(),
                                runs ? "that one waits no more" : "it has ended"));
  }
  if (claim_refused_by_budget(ctx, p.for_job, p.node, p.first)) {
    ++ctx.rt.stats.plan_drops;
    return;
  }
  const auto& classes = ctx.state.tenancy.compiled.classes;
  const tenancy::PriorityClass& cls = classes.at(class_of(ctx.state, *victim).priority_class);
  event::JobFinishing e;
  e.job = p.victim;
  e.outcome = Outcome::preempted;
  e.grace = cls.grace;
  const PartitionId queue = class_of(ctx.state, *other).partition;
  const std::string payer = ctx.state.partition(queue).payer();
  const std::string other_text = fmt::format("job {} of {}", display_id(ctx.state, *other), payer);
  // The victim's owner can always read the cause, so it must not name a job of another tenant.
  const bool same = ctx.state.partition(class_of(ctx.state, *victim).partition).payer() == payer;
  e.cause = fmt::format("preempted for {}{}", same ? other_text : "a job of another tenant",
                        to_text(p.why));
  e.for_own = same && tenant_of(ctx.state, *victim) != nullptr;
  if (cls.victim_mode == tenancy::VictimMode::requeue && victim->may_requeue)
    e.requeue = RequeueWhy::preempted;
  ctx.note(fmt::format("job {} is preempted for {}{}", display_id(ctx.state, *victim), other_text,
                       to_text(p.why)));
  if (victim->warn && victim->phase == Phase::running) send_warning(ctx, *victim);
  ctx.record(e);
  ++ctx.rt.stats.preemptions;
  ctx.turn.changes.emplace_back(placed_view(ctx.state, ctx.state.jobs.at(p.victim)));
}

}  // namespace

void apply_plan(Context& ctx, sched::Plan&& plan) {
  ++ctx.rt.stats.plans;
  ctx.rt.stats.classes += plan.stats.classes;
  ctx.rt.stats.plan_last = plan.stats.took;
  ctx.rt.stats.plan_most = std::max(ctx.rt.stats.plan_most, plan.stats.took);
  ctx.rt.figures->plan_longest = std::max(ctx.rt.figures->plan_longest, plan.stats.took);
  ctx.rt.stats.plan_all = ctx.rt.stats.plan_all + plan.stats.took;
  ctx.rt.stats.backfilled += plan.stats.backfilled;
  ctx.rt.turn->planned = ctx.now;
  const std::uint64_t starts = ctx.rt.stats.starts;
  for (std::span<sched::Start> rest(plan.starts); !rest.empty();) {
    const std::size_t parts = together(ctx.state, rest);
    if (parts == 0)
      apply_start(ctx, std::move(rest[0]));
    else
      apply_together(ctx, rest.first(parts));
    rest = rest.subspan(std::max<std::size_t>(parts, 1));
  }
  for (const sched::Preempt& preempt : plan.preemptions) apply_preempt(ctx, preempt);
  for (sched::ClassVerdict& v : plan.verdicts) {
    const Job* head = ctx.state.jobs.find(v.head);
    if (head == nullptr || ctx.rt.plan->marks.at(v.head).told.startable == 0)
      continue;  // the next plan has another first job
    verdict_changes(ctx, head->cls, v);
    ctx.rt.plan->verdicts.set(ctx.state.classes, head->cls, std::move(v));
  }
  // Only some plans estimate all starts; the others estimate only their reserved heads, and leave
  // older estimates as they are.
  if (plan.estimated) ctx.rt.plan->expected.clear();
  for (sched::Expected& e : plan.expected)
    ctx.rt.plan->expected.insert_or_assign(e.job, std::move(e));
  // A plan that started nothing would be the same again until something changes.
  if (plan.stats.budget_spent && ctx.rt.stats.starts != starts) ctx.turn.schedule = true;
}

}  // namespace gantry::core
