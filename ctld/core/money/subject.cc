// Budgets and posted months as subjects: budget_gate.cc keeps jobs from the scheduler and checks
// each start.
#include "ctld/core/money/subject.h"

#include <fmt/core.h>

#include "common/text/text.h"
#include "ctld/core/money/budget_gate.h"
#include "ctld/core/money/budgets.h"
#include "ctld/core/money/memory.h"
#include "ctld/core/money/posted.h"
#include "ctld/core/runtime.h"

namespace gantry::core {
namespace {

std::optional<Instant> month_due(const Context& ctx) {
  return ctx.rt.money->month_due;
}

std::optional<Instant> budgets_due(const Context& ctx) {
  return ctx.rt.money->budgets_due;
}

// Adds the words about what the budget has spent, set aside and left.
void say_budget(const WhyAsked& asked, const std::optional<Verdict>& verdict) {
  if (!verdict) return;
  asked.say(asked, *verdict);
  const Context& ctx = asked.ctx;
  const std::string& name = verdict->subject;
  const BudgetAccount& account = ctx.state.budgets.accounts.at(name);
  const BudgetStand stand = stands_of(ctx.state, ctx.now).at(name);
  if (stand.span.name.empty()) return;
  asked.out.push_back(fmt::format(
      "of budget {}, {} {} for {}, {} are spent and {} set aside for jobs that run; {}", name,
      format_money(amount_of(account), 2), ctx.state.ledger.prices.currency,
      stand.span.name == "fixed" ? account.budget.from + " to " + account.budget.until
                                 : stand.span.name,
      format_money(stand.spent, 2), format_money(stand.reserved, 2),
      stand.span.name == "fixed" ? "it ends at " + format_time(stand.span.to)
                                 : "the next one begins at " + format_time(stand.span.to)));
}

}  // namespace

const Subject kMonths{
    .name = "months", .start = close_months, .due = month_due, .ring = close_months};
const Subject kBudgets{.name = "budgets",
                       .start = look_at_budgets,
                       .check = verdict_of_budget,
                       .looks_later = true,
                       .words = say_budget,
                       .due = budgets_due,
                       .ring = look_at_budgets};

}  // namespace gantry::core
