// Verdicts and their words; see explain.h.
#include "ctld/core/job/explain.h"

#include <fmt/core.h>

#include "common/job/verdict_text.h"
#include "common/text/text.h"
#include "ctld/core/access/sight.h"
#include "ctld/core/context.h"
#include "ctld/core/job/eligible.h"
#include "ctld/core/job/het.h"
#include "ctld/core/job/holders.h"
#include "ctld/core/job/likely.h"
#include "ctld/core/job/rows.h"
#include "ctld/core/limits/limits.h"
#include "ctld/core/money/budget_gate.h"
#include "ctld/core/money/budgets.h"
#include "ctld/core/resources/licenses.h"
#include "ctld/core/runtime.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/admission.h"
#include "ctld/core/tenancy/multifactor.h"
#include "ctld/core/tenancy/queues.h"
#include "ctld/core/tenancy/reservations.h"

namespace gantry::core {
namespace {

std::string dependency_text(const DependencyState& d) {
  if (d.what.kind == DependencyKind::singleton) return "singleton";
  std::string out = fmt::format("{}:{}", enum_name(d.what.kind), d.what.job.value());
  if (d.what.array_task) out += fmt::format("_{}", *d.what.array_task);
  if (d.what.delay.us > 0) out += fmt::format("+{}", d.what.delay.seconds() / 60);
  return out;
}

std::string dependencies_text(const Job& job, DependencyStatus status) {
  std::string out;
  for (const DependencyState& d : job.dependencies->list) {
    if (d.status != status) continue;
    if (!out.empty()) out += job.dependencies->any ? '?' : ',';
    out += dependency_text(d);
  }
  return out;
}

std::optional<Verdict> verdict_of_hold(const Job& job) {
  switch (job.hold) {
    case Hold::none: return std::nullopt;
    case Hold::user: return Verdict{Reason::held_user, 0, 0, {}};
    case Hold::admin: return Verdict{Reason::held_admin, 0, 0, job.cause};
    case Hold::special_exit: return Verdict{Reason::special_exit, 0, 0, job.cause};
    case Hold::launch_failed: return Verdict{Reason::launch_failed_held, 0, 0, job.cause};
  }
  return std::nullopt;
}

std::optional<Verdict> verdict_of_dependencies(const Job& job) {
  if (!job.dependencies) return std::nullopt;
  const Gate gate = dependency_gate(job);
  if (gate == Gate::never)
    return Verdict{Reason::never_satisfied, 0, 0, dependencies_text(job, DependencyStatus::never)};
  const bool blocked = job.is_array() ? ready_tasks(job).empty() : gate != Gate::open;
  if (!blocked) return std::nullopt;
  if (job.is_array() && !job.tasks->corr_never.empty() &&
      job.tasks->pending.intersect(job.tasks->corr_never).count() == job.tasks->pending.count())
    return Verdict{Reason::never_satisfied, 0, 0, dependencies_text(job, DependencyStatus::open)};
  return Verdict{Reason::dependency, 0, 0, dependencies_text(job, DependencyStatus::open)};
}

// What describe_verdict() says, and for windows and reservations what only the controller knows.
std::string words_of(const Context& ctx, const Job& job, const Verdict& v) {
  if (v.reason == Reason::reservation) return reservation_words(ctx, job, v.subject);
  if (v.reason == Reason::maintenance) return window_words(ctx, v.subject, {v.a});
  return describe_verdict(v, ctx.now);
}

// Says which setting keeps a job within its quota from taking resources back from other tenants.
void say_nothing_taken(const Context& ctx, const Job& job, const Verdict& v,
                       std::vector<std::string>& out) {
  if (v.reason != Reason::resources && v.reason != Reason::priority && v.reason != Reason::planned)
    return;
  const CompiledTenant* tenant = tenant_of(ctx.state, job);
  if (tenant == nullptr || !class_of(ctx.state, job).reservation.empty()) return;
  const bool others =
      std::any_of(ctx.state.tenancy.compiled.tenants.begin(),
                  ctx.state.tenancy.compiled.tenants.end(), [&](const auto& other) {
                    return &other.second != tenant &&
                           ctx.rt.quota->usage(other.second.quota_node, 0, Resource::cpu) > 0;
                  });
  if (!others) return;
  const sched::QuotaNode& node = ctx.state.tenancy.compiled.view->nodes[tenant->quota_node];
  if (node.parent == sched::kNoIndex)
    out.push_back(fmt::format(
        "its tenant {} is in no cohort, so nothing is taken back for it from jobs of others, also "
        "of lower classes (controller.one_cohort, or `cohort` in the tenants' documents)",
        node.name));
  else if (node.reclaim == tenancy::Reclaim::never)
    out.push_back(
        fmt::format("its tenant {} takes nothing back from others (reclaim: never)", node.name));
}

// Says which nodes the job cannot have now, and why: those that it names, or those of its partition
// that are out of service.
void say_nodes(const Holders& holders, const Context& ctx, const Job& job, const Verdict& v,
               std::vector<std::string>& out) {
  if (!class_of(ctx.state, job).shape.required_nodes.empty()) return holders.say_named_nodes(out);
  if (v.reason == Reason::resources || v.reason == Reason::nodes_unavailable ||
      v.reason == Reason::bad_constraints)
    holders.say_lost_nodes(out);
}

// The latest start by limits, and the likely one from what such jobs needed before.
std::string say_start(const Context& ctx, const Job& job, Instant latest) {
  std::string out = "by the limits of what runs it starts at " + format_time(latest);
  if (const auto likely = likely_start(ctx, job))
    out += ", and by what such jobs needed before at about " + format_time(*likely);
  return out;
}

// Says what the budget has spent, set aside and left.
void say_budget(const Context& ctx, const std::string& name, std::vector<std::string>& out) {
  const BudgetAccount& account = ctx.state.budgets.accounts.at(name);
  const BudgetStand stand = stands_of(ctx.state, ctx.now).at(name);
  if (stand.span.name.empty()) return;
  out.push_back(fmt::format(
      "of budget {}, {} {} for {}, {} are spent and {} set aside for jobs that run; {}", name,
      format_money(amount_of(account), 2), ctx.state.ledger.prices.currency,
      stand.span.name == "fixed" ? account.budget.from + " to " + account.budget.until
                                 : stand.span.name,
      format_money(stand.spent, 2), format_money(stand.reserved, 2),
      stand.span.name == "fixed" ? "it ends at " + format_time(stand.span.to)
                                 : "the next one begins at " + format_time(stand.span.to)));
}

}  // namespace

namespace {

// The reason that keeps the job itself from the scheduler, without regard to other components.
std::optional<Verdict> verdict_alone(const Context& ctx, const Job& job) {
  if (auto held = verdict_of_hold(job)) return held;
  if (auto shut_out = verdict_of_admission(ctx.state, job)) return shut_out;
  if (auto blocked = verdict_of_dependencies(job)) return blocked;
  if (job.not_before && *job.not_before > ctx.now)
    return Verdict{job.backing_off ? Reason::requeued : Reason::begin_time, job.not_before->us, 0,
                   job.backing_off ? job.cause : std::string()};
  if (array_room(ctx.state, job) == 0u) {
    const Job& array = job.is_element() ? ctx.state.jobs.at(job.array) : job;
    return Verdict{Reason::array_task_limit, array.tasks->active, *array.tasks->max_running, {}};
  }
  if (auto v = verdict_of_licenses(ctx.state, job)) return v;
  if (auto v = verdict_of_limits(ctx.state, job, ctx.now)) return v;
  if (auto v = verdict_of_budget(ctx, job)) return v;
  const Partition& partition = ctx.state.partition(class_of(ctx.state, job).partition);
  if (!partition.up()) return Verdict{Reason::partition_down, 0, 0, partition.name};
  return std::nullopt;
}

// The first other component that is kept from the scheduler, and the reason. After a requeue,
// components that have let go of their nodes wait for those that have not.
std::optional<std::pair<const Job*, Verdict>> verdict_of_sibling(const Context& ctx,
                                                                 const Job& job) {
  std::optional<std::pair<const Job*, Verdict>> found;
  each_sibling(ctx.state, job, [&](const Job& other) {
    if (found || other.phase == Phase::ended) return;
    if (other.phase != Phase::queued)
      found.emplace(&other, Verdict{Reason::dependency, 0, 0,
                                    fmt::format("component {}, which has not let go of its nodes",
                                                display_id(ctx.state, other))});
    else if (auto v = verdict_alone(ctx, other))
      found.emplace(&other, std::move(*v));
  });
  return found;
}

}  // namespace

// Components wait for the same thing. A component that could start by itself gets the verdict of
// the one that cannot, or else of the leader, because the scheduler gives its verdict for the
// leader.
Verdict verdict_of(const Context& ctx, const Job& job) {
  if (auto alone = verdict_alone(ctx, job)) return *alone;
  if (auto sibling = verdict_of_sibling(ctx, job)) return std::move(sibling->second);
  const auto& het = class_of(ctx.state, job).het;
  const Job* leader = het ? ctx.state.jobs.find(het->leader) : &job;
  const sched::ClassVerdict& all =
      ctx.rt.verdicts.of(ctx.state.classes, (leader != nullptr ? leader : &job)->cls);
  if (het) return all.of_head;
  return all.head == job.id ? all.of_head : all.of_rest;
}

std::vector<std::string> why(const Context& ctx, const Job& job, const Sight* sight) {
  std::vector<std::string> out;
  if (job.phase != Phase::queued) return out;
  const auto seen = [&](const Verdict& v) { return sight == nullptr ? v : sight->verdict(v); };
  const auto say = [&](const Verdict& v) { out.push_back(words_of(ctx, job, seen(v))); };
  const Holders holders(ctx, job, sight);
  if (auto v = verdict_of_hold(job)) say(*v);
  if (auto v = verdict_of_admission(ctx.state, job)) say(*v);
  if (auto v = verdict_of_dependencies(job)) {
    say(*v);
    holders.say_dependencies(out);
  }
  if (job.not_before && *job.not_before > ctx.now)
    say({job.backing_off ? Reason::requeued : Reason::begin_time, job.not_before->us, 0, {}});
  if (job.backing_off && !job.cause.empty()) out.push_back("the last start: " + job.cause);
  if (array_room(ctx.state, job) == 0u) {
    const Job& array = job.is_element() ? ctx.state.jobs.at(job.array) : job;
    say({Reason::array_task_limit, array.tasks->active, *array.tasks->max_running, {}});
  }
  if (auto v = verdict_of_licenses(ctx.state, job)) {
    say(*v);
    holders.say_license(v->subject, out);
  }
  if (auto v = verdict_of_limits(ctx.state, job, ctx.now)) say(*v);
  if (auto v = verdict_of_budget(ctx, job)) {
    say(*v);
    say_budget(ctx, v->subject, out);
  }
  const Partition& partition = ctx.state.partition(class_of(ctx.state, job).partition);
  if (!partition.up()) say({Reason::partition_down, 0, 0, partition.name});
  if (const auto sibling = verdict_of_sibling(ctx, job); out.empty() && sibling)
    out.push_back(fmt::format("its component {}: {}", display_id(ctx.state, *sibling->first),
                              words_of(ctx, *sibling->first, seen(sibling->second))));
  if (out.empty()) {
    const Verdict v = verdict_of(ctx, job);
    say(v);
    say_nodes(holders, ctx, job, v, out);
    say_nothing_taken(ctx, job, v, out);
  }
  if (const auto it = ctx.rt.expected.find(job.id); it != ctx.rt.expected.end())
    out.push_back(say_start(ctx, job, it->second.start));
  if (rank_now(ctx, job).raised)
    out.push_back(fmt::format(
        "it has waited for {}: it goes before all jobs of its class that have not waited as long, "
        "and no claim to quota takes what is reserved for it",
        format_duration(ctx.now - job.eligible)));
  out.push_back(fmt::format("its priority is {}", priority_now(ctx, job)));
  return out;
}

}  // namespace gantry::core
