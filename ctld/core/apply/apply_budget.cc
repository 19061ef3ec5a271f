// apply() of events about quota, budgets, increases of quota, and idle GPUs.
#include <algorithm>
#include <utility>

#include "common/assert.h"
#include "common/proto/budget.h"
#include "common/proto/tenant_events.h"
#include "ctld/core/apply.h"
#include "ctld/core/event/events_budget.h"
#include "ctld/core/event/events_tenancy.h"
#include "ctld/core/money/budgets.h"
#include "ctld/core/money/ledger.h"
#include "ctld/core/resources/index.h"
#include "ctld/core/state/mutable_state.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

void keep_alert(MutableState& state, const proto::QuotaAlert& alert) {
  TenancyState& tenancy = state.tenancy;
  GANTRY_ASSERT(alert.number == tenancy.last_alert + 1, "alerts are numbered in order");
  tenancy.last_alert = alert.number;
  tenancy.alerts.push_back(alert);
  state.unfolded.alerts.push_back(alert.number);
  if (tenancy.alerts.size() <= kMaxAlerts) return;
  state.unfolded.alerts.push_back(tenancy.alerts.front().number);
  tenancy.alerts.pop_front();
}

void touch_book(MutableState& state, const std::string& name, BudgetBook& book) {
  if (!book.fold_due) state.unfolded.books.push_back(name);
  book.fold_due = true;
}

}  // namespace

void apply_event(MutableState& state, Instant, const event::QuotaFilled& e) {
  keep_alert(state, e.alert);
}

void apply_event(MutableState& state, Instant, const event::GpusIdle& e) {
  JobEdit job(state, e.job);
  GANTRY_ASSERT(job->active != nullptr, "a job that runs");
  job->active->idle_told = e.alert.step;
  if (e.alert.step != proto::IdleGpuStep::none) keep_alert(state, e.alert);
}

void apply_event(MutableState& state, Instant, const event::BudgetReached& e) {
  keep_alert(state, e.alert);
  const auto it = state.budgets.books.find(e.alert.budget);
  GANTRY_ASSERT(it != state.budgets.books.end(), "a budget that there is");
  it->second.told = std::max(it->second.told, e.alert.percent);
  touch_book(state, it->first, it->second);
}

void apply_event(MutableState& state, Instant at, const event::BudgetsRolled& e) {
  for (const JobId id : jobs_on_nodes(state)) {
    if (budgets_of(std::as_const(state), state.jobs.at(id)).empty()) continue;
    JobEdit job(state, id);
    charge(state, *job, at);
  }
  for (const auto& [name, period] : e.periods) {
    BudgetBook& book = state.budgets.books.at(name);
    book.period = period;
    book.told = 0;
    touch_book(state, name, book);
    state.touched.budgets.push_back(name);
  }
}

void apply_event(MutableState& state, Instant, const event::JobLowered& e) {
  JobEdit job(state, e.job);
  sched::ClassKey key = class_of(state, *job);
  key.priority_class = e.priority_class;
  set_class(state, *job, key);
  job->lowered = e.lowered;
}

void apply_event(MutableState& state, Instant, const event::OvertimeSet& e) {
  state.budgets.kill_wait = e.kill_wait;
  state.budgets.start_timeout = e.start_timeout;
  state.unfolded.meta = true;
}

void apply_event(MutableState& state, Instant, const event::IncreaseSet& e) {
  BudgetState& budgets = state.budgets;
  budgets.increases.insert_or_assign(e.increase.number, e.increase);
  state.unfolded.increases.push_back(e.increase.number);
  budgets.last_increase = std::max(budgets.last_increase, e.increase.number);
  const auto open = [](const proto::Increase& i) {
    return i.state == proto::IncreaseState::asked || i.state == proto::IncreaseState::approved;
  };
  for (auto it = budgets.increases.begin();
       budgets.increases.size() > kIncreasesKept && it != budgets.increases.end();) {
    if (open(it->second)) {
      ++it;
      continue;
    }
    state.unfolded.increases.push_back(it->first);
    it = budgets.increases.erase(it);
  }
  add_increases(state);
  if (!e.increase.budget.empty()) state.touched.budgets.push_back(e.increase.budget);
}

}  // namespace gantry::core
