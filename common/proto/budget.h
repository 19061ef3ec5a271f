// Budgets and their state, and requests for more of a budget or of quota. Client to ctld, and the
// answers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/money/budget.h"
#include "common/resources/resources.h"

namespace gantry::proto {

struct ListBudgets {  // shows tenants in which the asker has a role, and the asker's own budgets
  std::vector<std::string> names;  // of budgets or tenants; none = all
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "names", s.names);
  }
};

struct PeriodSpent {
  std::string period;  // "2026-11", "2026-Q4", "2026", "2026-W47", "fixed"
  Money spent;         // minus what was credited
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "period", s.period);
    v(2, "spent", s.spent);
  }
};

struct BudgetRow {
  tenancy::Budget budget;
  std::string period;    // as in PeriodSpent; "" = a fixed period that has not begun, or is over
  Instant from{}, to{};  // of the period
  Money amount;          // including the increases in force
  Money increase;        // part of `amount`
  Money spent;           // up to now
  Money reserved;        // what running jobs may still cost
  Money forecast;        // spent at the end of the period, if it goes on as in the last seven days
  std::uint64_t waiting = 0;         // jobs that wait because of this budget
  std::vector<PeriodSpent> earlier;  // oldest first
  // Less than kForecastNeeds of charges are known: `forecast` is then what is spent, and no
  // forecast.
  bool little_history = false;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "budget", s.budget);
    v(2, "period", s.period);
    v(3, "from", s.from);
    v(4, "to", s.to);
    v(5, "amount", s.amount);
    v(6, "increase", s.increase);
    v(7, "spent", s.spent);
    v(8, "reserved", s.reserved);
    v(9, "forecast", s.forecast);
    v(10, "waiting", s.waiting);
    v(11, "earlier", s.earlier);
    v(12, "little_history", s.little_history);
  }
};

struct BudgetList {
  std::vector<BudgetRow> rows;  // by tenant, project, user, name
  std::string currency;
  Instant now{};
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "rows", s.rows);
    v(2, "currency", s.currency);
    v(3, "now", s.now);
  }
};

enum class IncreaseState : std::uint8_t {
  asked = 1,
  approved = 2,
  denied = 3,
  withdrawn = 4,
  expired = 5
};
constexpr auto enum_names(IncreaseState) {
  using enum IncreaseState;
  return std::array<std::pair<IncreaseState, std::string_view>, 5>{{{asked, "asked"},
                                                                    {approved, "approved"},
                                                                    {denied, "denied"},
                                                                    {withdrawn, "withdrawn"},
                                                                    {expired, "expired"}}};
}

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
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "number", s.number);
    v(2, "tenant", s.tenant);
    v(3, "budget", s.budget);
    v(4, "amount", s.amount);
    v(5, "quota", s.quota);
    v(6, "resource", s.resource);
    v(7, "flavor", s.flavor);
    v(8, "until", s.until);
    v(9, "reason", s.reason);
    v(10, "asked_by", s.asked_by);
    v(11, "asked_at", s.asked_at);
    v(12, "state", s.state);
    v(13, "decided_by", s.decided_by);
    v(14, "decided_at", s.decided_at);
    v(15, "note", s.note);
  }
};

// Sent by a tenant's admin; answered by IncreaseReply. The members that the controller sets itself
// are ignored: number, state, who and when.
struct AskIncrease {
  Increase wanted;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "wanted", s.wanted);
  }
};

// Decides a request: approved or denied (by a platform admin), withdrawn (by the tenant's admin),
// or expired (an approved increase ends now, by a platform admin). Answered by IncreaseReply.
struct DecideIncrease {
  std::uint64_t number = 0;
  IncreaseState state = IncreaseState::denied;
  std::string note;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "number", s.number);
    v(2, "state", s.state);
    v(3, "note", s.note);
  }
};

struct ListIncreases {               // shows tenants in which the asker has a role
  std::vector<std::string> tenants;  // none = all
  bool all = false;                  // also those that are over
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "tenants", s.tenants);
    v(2, "all", s.all);
  }
};

struct IncreaseReply {
  std::vector<Increase> rows;  // by number
  std::string currency;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "rows", s.rows);
    v(2, "currency", s.currency);
  }
};

}  // namespace gantry::proto
