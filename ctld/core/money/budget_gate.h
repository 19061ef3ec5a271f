// The effect of budgets on jobs: a start waits if a budget has too little left for it (or the job
// is lowered into another class), thresholds become events, and a budget that stops jobs ends them.
//
// A job that waits for a budget is kept from the scheduler, so it costs a plan nothing. It is
// offered again when the budget has as much left as the job needs. Without budgets, nothing is
// checked.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/job/job_spec.h"
#include "common/job/job_state.h"
#include "ctld/core/context.h"
#include "ctld/core/money/estimate.h"
#include "ctld/sched/change.h"

namespace gantry::core {

// plan_apply.cc: true if the job may not start like this; then the scheduler has been told why.
// `beside`: what other components that start with this one may cost each budget; the cost of this
// one is added.
using BudgetSums = std::map<std::string, Money>;  // by budget
bool refused_by_budget(Context& ctx, JobId job, const std::vector<sched::NodeGrant>& grants,
                       bool exclusive, BudgetSums* beside = nullptr);
// plan_apply.cc: true if no job may be preempted for this one, because a budget has too little left
// for it in addition to the jobs for which others are being preempted already. Then the scheduler
// has been told. `node` is one of the nodes that the job is to get; `first`: nothing was preempted
// for it in this plan yet.
bool claim_refused_by_budget(Context& ctx, JobId job, NodeId node, bool first);
// The job no longer waits for preempted jobs to leave; with `one_task`, only one task of an array
// stops waiting.
void drop_claim(Context& ctx, JobId job, bool one_task = false);
// Call it when a job has been placed, because thresholds may be reached sooner then.
void budget_taken(Context& ctx, const Job& job);

// queue.cc: true if the job waits for a budget, although it may start otherwise.
bool gated(Context& ctx, const Job& job);
void drop_gate(Context& ctx, JobId job);
std::optional<Verdict> verdict_of_budget(const Context& ctx, const Job& job);

// settle.cc: offers the scheduler jobs for which a budget has enough now. Returns true if there was
// one.
bool open_gates(Context& ctx);

// timers.cc, and after a change of the documents: handles new periods, thresholds, jobs to be ended
// and increases that are over; sets BudgetMemory::budgets_due.
void look_at_budgets(Context& ctx);

// handle_submit.cc. check_budgets() refuses a job without a time limit if a budget has to reserve
// its cost. warn_of_budgets() says that the job will wait for a budget, or can never fit into it.
Result<void> check_budgets(const Context& ctx, const Partition& partition, const JobSpec& spec,
                           const std::string& user, std::optional<Duration> limit);
void warn_of_budgets(const Context& ctx, const Partition& partition, const JobSpec& spec,
                     const std::string& user, const Estimate& cost,
                     std::vector<std::string>& warnings);

}  // namespace gantry::core
