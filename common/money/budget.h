// Budgets: how much money a tenant, a project or a user of it may cost in a period, and what
// happens when that is used up. A budget is a tenancy document (tenancy_cluster.h).
//
// What is spent is what the ledger charges minus what it credits. A budget that holds or stops jobs
// sets money aside when a job starts: the most that the job may cost (its time limit at the known
// prices). So the sum of what is spent and set aside is never above the amount.
#pragma once

#include <string>
#include <vector>

#include "common/fields.h"
#include "common/money/money.h"
#include "common/special_members.h"
#include "common/time/time.h"

namespace gantry::tenancy {

// Calendar periods in the tenant's time zone. `fixed` is one period, from `from` until `until`.
enum class BudgetPeriod : std::uint8_t { month = 0, quarter = 1, year = 2, week = 3, fixed = 4 };
GANTRY_NAMES(BudgetPeriod, {month, "month"}, {quarter, "quarter"}, {year, "year"}, {week, "week"},
             {fixed, "fixed"})

// What happens to jobs that the budget cannot pay. warn: they start nevertheless; lower_class: they
// start in a lower class; hold: they wait; stop: they wait, and running jobs are ended once the
// budget is used up.
enum class BudgetAction : std::uint8_t { warn = 0, lower_class = 1, hold = 2, stop = 3 };
GANTRY_NAMES(BudgetAction, {warn, "warn"}, {lower_class, "lower-class"}, {hold, "hold"},
             {stop, "stop"})

inline constexpr Money kMostBudget{1'000'000'000'000 * kMoneyUnit};
inline constexpr std::uint32_t kMostWarnPercent = 1000;

struct Budget {
  GANTRY_SPECIAL_MEMBERS(Budget)
  static constexpr std::string_view kName = "Budget";
  static constexpr int kKind = 9;
  std::string name;
  std::string description;
  std::string tenant;
  std::string project;  // a project of the tenant; "" = all of them
  std::string user;     // login name; "" = all
  Money amount;         // for each period, above 0
  BudgetPeriod period = BudgetPeriod::month;
  std::string from, until;  // for `fixed`, local: "2026-12-01"; the period is [from, until)
  std::vector<std::uint32_t> warn_at;  // per cent of the amount that is spent; ascending
  BudgetAction at_limit = BudgetAction::hold;
  std::string lower_to;          // for lower_class: a PriorityClass
  Duration grace = seconds(60);  // for stop: time from the signal to the kill
  friend bool operator==(const Budget&, const Budget&) = default;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, description), FIELD(3, tenant), FIELD(4, project),
                FIELD(5, user), FIELD(6, amount), FIELD(7, period), FIELD(8, from), FIELD(9, until),
                FIELD(10, warn_at), FIELD(11, at_limit), FIELD(12, lower_to), FIELD(13, grace))
};

}  // namespace gantry::tenancy
