// Verdicts and their words; see explain.h.
#include "ctld/core/job/explain.h"

#include <fmt/core.h>

#include "common/job/verdict_text.h"
#include "common/text/text.h"
#include "ctld/core/access/sight.h"
#include "ctld/core/context.h"
#include "ctld/core/job/het.h"
#include "ctld/core/job/holders.h"
#include "ctld/core/job/likely.h"
#include "ctld/core/job/rows.h"
#include "ctld/core/limits/limits.h"
#include "ctld/core/money/budget_gate.h"
#include "ctld/core/money/budgets.h"
#include "ctld/core/plan_memory.h"
#include "ctld/core/resources/licenses.h"
#include "ctld/core/runtime.h"
#include "ctld/core/state/state.h"
#include "ctld/core/subject.h"
#include "ctld/core/tenancy/admission.h"
#include "ctld/core/tenancy/memory.h"
#include "ctld/core/tenancy/multifactor.h"
#include "ctld/core/tenancy/queues.h"
#include "ctld/core/tenancy/reservations.h"

namespace gantry::core {
namespace {

// The words of describe_verdict(), and for windows and reservations what only the controller knows.
std::string words_of(const Context& ctx, const Job& job, const Verdict& v) {
  if (v.reason == Reason::reservation) return reservation_words(ctx, job, v.subject);
  if (v.reason == Reason::maintenance) return window_words(ctx, v.subject, {v.a});
  return describe_verdict(v, ctx.now);
}

// Adds the verdict's own line, as far as the person who asks may see it.
void say(const WhyAsked& asked, const Verdict& v) {
  asked.out.push_back(
      words_of(asked.ctx, asked.job, asked.sight == nullptr ? v : asked.sight->verdict(v)));
}

// Says which setting keeps a job within its quota from taking resources back from other tenants.
void say_nothing_taken(const Context& ctx, const Job& job, const Verdict& v,
                       std::vector<std::string>& out) {
  if (v.reason != Reason::resources && v.reason != Reason::priority && v.reason != Reason::planned)
    return;
  const CompiledTenant* tenant = tenant_of(ctx.state, job);
  if (tenant == nullptr || !class_of(ctx.state, job).reservation.empty()) return;
  const bool others = std::any_of(ctx.state.tenancy.compiled.tenants.begin(),
                                  ctx.state.tenancy.compiled.tenants.end(), [&](const auto& other) {
                                    return &other.second != tenant &&
                                           ctx.rt.tenancy->quota->usage(other.second.quota_node, 0,
                                                                        Resource::cpu) > 0;
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

// The latest start according to time limits, and the likely start according to earlier runs of such
// jobs.
std::string say_start(const Context& ctx, const Job& job, Instant latest) {
  std::string out = "by the limits of what runs it starts at " + format_time(latest);
  if (const auto likely = likely_start(ctx, job))
    out += ", and by what such jobs needed before at about " + format_time(*likely);
  return out;
}

// The reason why the job itself is not offered to the scheduler, without regard to other
// components.
std::optional<Verdict> verdict_alone(const Context& ctx, const Job& job) {
  for (const Subject* one : subjects())
    if (one->check != nullptr)
      if (auto verdict = one->check(ctx, job)) return verdict;
  return std::nullopt;
}

// The first other component that is not offered to the scheduler, and the reason. After a requeue,
// components whose nodes are released wait for those whose nodes are not.
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
      ctx.rt.plan->verdicts.of(ctx.state.classes, (leader != nullptr ? leader : &job)->cls);
  if (het) return all.of_head;
  return all.head == job.id ? all.of_head : all.of_rest;
}

std::vector<std::string> why(const Context& ctx, const Job& job, const Sight* sight) {
  std::vector<std::string> out;
  if (job.phase != Phase::queued) return out;
  const auto seen = [&](const Verdict& v) { return sight == nullptr ? v : sight->verdict(v); };
  const WhyAsked asked{ctx, job, sight, out, say};
  for (const Subject* one : subjects()) {
    if (one->check == nullptr) continue;
    const std::optional<Verdict> verdict = one->check(ctx, job);
    if (one->words != nullptr)
      one->words(asked, verdict);
    else if (verdict)
      say(asked, *verdict);
  }
  if (const auto sibling = verdict_of_sibling(ctx, job); out.empty() && sibling)
    out.push_back(fmt::format("its component {}: {}", display_id(ctx.state, *sibling->first),
                              words_of(ctx, *sibling->first, seen(sibling->second))));
  if (out.empty()) {
    const Verdict v = verdict_of(ctx, job);
    say(asked, v);
    say_nodes(Holders(ctx, job, sight), ctx, job, v, out);
    say_nothing_taken(ctx, job, v, out);
  }
  if (const auto it = ctx.rt.plan->expected.find(job.id); it != ctx.rt.plan->expected.end())
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
