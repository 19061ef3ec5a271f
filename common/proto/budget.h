// Budgets and their state, and requests for more of a budget or of quota. Client to ctld, and the
// answers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/money/budget.h"
#include "common/resources/resources.h"

namespace gantry::proto {

struct ListBudgets {  // shows tenants in which the asker has a role, and the asker's own budgets
  std::vector<std::string> names;  // names of budgets or tenants; empty = all
  GANTRY_FIELDS(FIELD(1, names))
};

struct PeriodSpent {
  std::string period;  // "2026-11", "2026-Q4", "2026", "2026-W47", "fixed"
  Money spent;         // minus what was credited
  GANTRY_FIELDS(FIELD(1, period), FIELD(2, spent))
};

struct BudgetRow {
  tenancy::Budget budget;
  std::string period;    // as in PeriodSpent; "" = a fixed period that has not begun, or is over
  Instant from{}, to{};  // of the period
  Money amount;          // including the increases in force
  Money increase;        // part of `amount`
  Money spent;           // up to now
  Money reserved;        // what running jobs may still cost
  Money forecast;        // spent at the end of the period, at the pace of the last seven days
  std::uint64_t waiting = 0;         // jobs that wait because of this budget
  std::vector<PeriodSpent> earlier;  // oldest first
  // Less than kForecastNeeds of charges are known: `forecast` is then what is spent, and no
  // forecast.
  bool little_history = false;
  GANTRY_FIELDS(FIELD(1, budget), FIELD(2, period), FIELD(3, from), FIELD(4, to), FIELD(5, amount),
                FIELD(6, increase), FIELD(7, spent), FIELD(8, reserved), FIELD(9, forecast),
                FIELD(10, waiting), FIELD(11, earlier), FIELD(12, little_history))
};

struct BudgetList {
  std::vector<BudgetRow> rows;  // by tenant, project, user, name
  std::string currency;
  Instant now{};
  GANTRY_FIELDS(FIELD(1, rows), FIELD(2, currency), FIELD(3, now))
};

enum class IncreaseState : std::uint8_t {
  asked = 1,
  approved = 2,
  denied = 3,
  withdrawn = 4,
  expired = 5
};
GANTRY_NAMES(IncreaseState, {asked, "asked"}, {approved, "approved"}, {denied, "denied"},
             {withdrawn, "withdrawn"}, {expired, "expired"})

// A request for more of a budget, or of a tenant's nominal quota; exactly one of `amount` and
// `quota` is set.
struct Increase {
  std::uint64_t number = 0;  // 1..
  std::string tenant;
  std::string budget;           // with amount
  std::optional<Money> amount;  // added to the budget's, above 0
  std::optional<std::int64_t>
      quota;  // added to the nominal quota; units of common/resources/resources.h, above 0
  Resource resource = Resource::gpu;  // with quota
  std::string flavor;                 // "" = all together
  std::optional<Instant> until;       // when it ends; not set = never
  std::string reason;
  std::string asked_by;
  Instant asked_at{};
  IncreaseState state = IncreaseState::asked;
  std::string decided_by;
  Instant decided_at{};
  std::string note;
  friend bool operator==(const Increase&, const Increase&) = default;
  GANTRY_FIELDS(FIELD(1, number), FIELD(2, tenant), FIELD(3, budget), FIELD(4, amount),
                FIELD(5, quota), FIELD(6, resource), FIELD(7, flavor), FIELD(8, until),
                FIELD(9, reason), FIELD(10, asked_by), FIELD(11, asked_at), FIELD(12, state),
                FIELD(13, decided_by), FIELD(14, decided_at), FIELD(15, note))
};

// Sent by a tenant's admin; answered by IncreaseReply. The members that the controller sets itself
// are ignored: number, state, who and when.
struct AskIncrease {
  Increase wanted;
  GANTRY_FIELDS(FIELD(1, wanted))
};

// Decides a request: approved or denied (by a platform admin), withdrawn (by the tenant's admin),
// or expired (an approved increase ends now, by a platform admin). Answered by IncreaseReply.
struct DecideIncrease {
  std::uint64_t number = 0;
  IncreaseState state = IncreaseState::denied;
  std::string note;
  GANTRY_FIELDS(FIELD(1, number), FIELD(2, state), FIELD(3, note))
};

struct ListIncreases {               // shows tenants in which the asker has a role
  std::vector<std::string> tenants;  // none = all
  bool all = false;                  // include those that have ended
  GANTRY_FIELDS(FIELD(1, tenants), FIELD(2, all))
};

struct IncreaseReply {
  std::vector<Increase> rows;  // by number
  std::string currency;
  GANTRY_FIELDS(FIELD(1, rows), FIELD(2, currency))
};

}  // namespace gantry::proto
