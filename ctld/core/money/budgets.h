// How budgets apply: which jobs they apply to, what is spent from them in which period, and what is
// set aside for running jobs. Like the ledger, all this is derived by apply() from the events of
// jobs.
//
// - When a job starts, the most that it may cost is set aside: from its placement to the end of its
//   time limit, plus the time to start it (start_timeout) and to end it (kill_wait), at the prices
//   that are known. Charges are taken from this amount; what is left when the job ends is free
//   again.
// - So spent + set aside grows only when a job starts. A start that would bring it above the amount
//   is refused (budget_gate.h). The time to start and end does not count there, so a job that costs
//   exactly the amount may start.
// - The amount set aside counts in full in the present period, although the job may run on into the
//   next one; the next period then begins with it.
// - A budget of the calendar counts charges since its period began, also those from before the
//   budget was made. A fixed one counts charges in whole months since its `from`, if `from` is the
//   first of a month.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ctld/core/state/budget_state.h"
#include "ctld/core/state/mutable_state.h"

namespace gantry::core {

using BudgetList = std::vector<BudgetAccount*>;

// The budgets that apply to the job's tenant, project and user.
BudgetList budgets_of(MutableState& state, const Job& job);
std::vector<const BudgetAccount*> budgets_of(const State& state, const Job& job);
std::vector<const BudgetAccount*> budgets_of(const State& state, const std::string& tenant,
                                             const std::string& project, const std::string& user);

struct BudgetSpan {
  std::string name;  // "2026-11", "2026-Q4", "2026", "2026-W47", "fixed"; "" = not begun, or over
  Instant from{}, to{};  // if name is "": from..to is the time before it begins, or without end
};
BudgetSpan span_at(const BudgetAccount& account, Instant t);

// ---- for apply() and loading only

// Call it when documents or prices have changed, after bills were brought up to date. Makes
// accounts, opens and closes books, and reserves the cost of every running job again.
void make_budgets(MutableState& state, Instant at);
// Call it when everything is loaded: takes accounts and reserved amounts from the records.
void load_budgets(MutableState& state);
void add_increases(MutableState& state);  // adds approved increases to the accounts

void post_spent(MutableState& state, const BudgetList& budgets, const Piece& piece, Money cost);
void post_credit(MutableState& state, const BudgetList& budgets, Instant at, Money credit);
void shift_reserved(MutableState& state, const BudgetList& budgets, Money change);
// set_aside() sets aside for a placed job, by its present limit; take_back() undoes that.
void set_aside(MutableState& state, Job& job);
void take_back(MutableState& state, Job& job);

// ---- reading

// The cost if the job runs to its limit plus `more`; nullopt without a limit.
std::optional<Money> most_of(const State& state, const Job& job, const Bill& bill, Instant start,
                             Duration more);
// The amount of the budget with approved increases.
Money amount_of(const BudgetAccount& account);
// The amount that is neither spent in the present period nor set aside; it may be below 0. It is
// right as of the newest event; what running jobs cost since then is part of what is set aside.
Money left_of(const BudgetAccount& account, Instant now);

struct BudgetStand {
  BudgetSpan span;
  Money spent;     // up to now
  Money reserved;  // set aside now
  Money forecast;  // expected to be spent at the end of the span
  Money rate;      // cost per hour of running jobs
  // True if there is too little history for a forecast; `forecast` is then what is spent.
  bool little_history = false;
};
// Figures of all budgets, by name.
std::map<std::string, BudgetStand> stands_of(const State& state, Instant now);

}  // namespace gantry::core
