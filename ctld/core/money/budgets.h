// Budgets at work: whose jobs they are of, what is spent of them in which period, and what is set
// aside for jobs that run. Derived by apply() from the events of jobs, as the ledger is.
//
// - When a job starts, the most that it may come to is set aside: from its placement to the end of
//   its time limit, plus what it takes to start (start_timeout) and to end it (kill_wait), at the
//   prices that are known. What is charged is taken from that; what is left when it ends is free.
// - So spent + set aside only grows when a job starts. A start is refused that would bring it above
//   the amount (budget_gate.h); the time for start and end does not count there, so a job that
//   costs just the amount may start.
// - What is set aside counts in full in the period in which the job runs, although it may run on
//   into the next one: the next one then begins with it.
// - A budget of the calendar counts what was charged since its period began, also before it was
//   made; a fixed one what was charged in whole months since its `from`, if that is a month's
//   first.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ctld/core/state/budget_state.h"
#include "ctld/core/state/mutable_state.h"

namespace gantry::core {

using BudgetList = std::vector<BudgetAccount*>;

// Of the job's tenant, project and user.
BudgetList budgets_of(MutableState& state, const Job& job);
std::vector<const BudgetAccount*> budgets_of(const State& state, const Job& job);
std::vector<const BudgetAccount*> budgets_of(const State& state, const std::string& tenant,
                                             const std::string& project, const std::string& user);

struct BudgetSpan {
  std::string name;  // "2026-11", "2026-Q4", "2026", "2026-W47", "fixed"; "" = not begun, or over
  Instant from{}, to{};  // of "": until it begins, or nothing
};
BudgetSpan span_at(const BudgetAccount& account, Instant t);

// ---- apply() and loading only

// The documents or prices have changed: makes accounts, opens and closes books, and sets aside anew
// for all that runs. Bills are up to date.
void make_budgets(MutableState& state, Instant at);
// After everything is loaded: accounts and what is set aside, as the records have it.
void load_budgets(MutableState& state);
void add_increases(MutableState& state);  // to the accounts

void post_spent(MutableState& state, const BudgetList& budgets, const Piece& piece, Money cost);
void post_credit(MutableState& state, const BudgetList& budgets, Instant at, Money credit);
void shift_reserved(MutableState& state, const BudgetList& budgets, Money change);
// Sets aside for a placed job, by its limit as it is now; and takes all of that back.
void set_aside(MutableState& state, Job& job);
void take_back(MutableState& state, Job& job);

// ---- reading

// What it may come to if it runs to its limit and `more`; nothing without a limit.
std::optional<Money> most_of(const State& state, const Job& job, const Bill& bill, Instant start,
                             Duration more);
// With increases.
Money amount_of(const BudgetAccount& account);
// Not spent in the present period, nor set aside; may be below 0. As of the newest events: what
// running jobs cost since then is set aside.
Money left_of(const BudgetAccount& account, Instant now);

struct BudgetStand {
  BudgetSpan span;
  Money spent;     // up to now
  Money reserved;  // yet
  Money forecast;  // spent at the end of the span
  Money rate;      // per hour, of what runs
};
// Of all budgets, by name.
std::map<std::string, BudgetStand> stands_of(const State& state, Instant now);

}  // namespace gantry::core
