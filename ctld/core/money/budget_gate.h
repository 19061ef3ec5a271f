// What budgets do to jobs: a start that one has not enough left for waits (or is lowered into
// another class), thresholds become events, and a budget that stops jobs ends them.
//
// A job that waits for a budget is behind a gate: the scheduler does not have it, so it costs a
// plan nothing. The gate opens when so much is left again. Where no budget is, nothing is looked
// at.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ctld/core/context.h"
#include "ctld/core/money/estimate.h"

namespace gantry::core {

// plan_apply.cc: true if the job may not start so; then the scheduler has been told why not.
// `beside`: what components that start with it may cost each budget; this one's is added.
using BudgetSums = std::map<std::string, Money>;  // by budget
bool refused_by_budget(Context& ctx, JobId job, const std::vector<sched::NodeGrant>& grants,
                       bool exclusive, BudgetSums* beside = nullptr);
// plan_apply.cc: true if nobody may leave for this job, as a budget has not enough left for it
// beside the others for which somebody leaves already; then the scheduler has been told. `node` is
// one of those that it is to get; `first`: nobody has been asked for it in this plan.
bool claim_refused_by_budget(Context& ctx, JobId job, NodeId node, bool first);
// The job waits no more for those who leave; of an array, one task.
void drop_claim(Context& ctx, JobId job, bool one_task = false);
// A job has been placed: thresholds may be reached sooner.
void budget_taken(Context& ctx, const Job& job);

// queue.cc: whether a job that may start otherwise waits for a budget.
bool gated(Context& ctx, const Job& job);
void drop_gate(Context& ctx, JobId job);
std::optional<Verdict> verdict_of_budget(const Context& ctx, const Job& job);

// settle.cc: lets go those for whom there is enough now; true if there was one.
bool open_gates(Context& ctx);

// timers.cc, and after a change of the documents: new periods, thresholds, jobs to be ended,
// increases that are over; sets rt.budgets_due.
void look_at_budgets(Context& ctx);

// handle_submit.cc: a budget can only set aside what has a limit; and in words, what it will wait
// for, or that it can never fit.
Result<void> check_budgets(const Context& ctx, const Partition& partition, const JobSpec& spec,
                           const std::string& user, std::optional<Duration> limit);
void warn_of_budgets(const Context& ctx, const Partition& partition, const JobSpec& spec,
                     const std::string& user, const Estimate& cost,
                     std::vector<std::string>& warnings);

}  // namespace gantry::core
