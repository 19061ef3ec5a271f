// Budgets in State: what was spent from each, what is set aside, and the increases that were asked
// for. The books (Table::usage) and the increases (Table::increase) are durable; the rest is
// derived from the documents and the bills. Only apply() changes them (budgets.h has the rules).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/fields.h"
#include "common/money/budget.h"
#include "common/proto/budget.h"
#include "common/time/time_zone.h"
#include "ctld/core/state/owned.h"

namespace gantry::core {

inline constexpr std::size_t kPeriodsKept = 24;   // periods kept for each budget
inline constexpr std::int64_t kForecastDays = 7;  // days whose pace the forecast continues
// A forecast needs charges from at least this long ago, because a pace of hours does not predict a
// month.
inline constexpr Duration kForecastNeeds = hours(72);
inline constexpr std::size_t kIncreasesKept =
    2000;  // increases kept: all open ones, and the newest of the others

struct DaySpent {
  std::int64_t day = 0;  // local, since 1970-01-01
  Money spent;
  GANTRY_FIELDS(FIELD(1, day), FIELD(2, spent))
};

// The durable part of a budget.
struct BudgetBook {
  std::string tenant, project, user;   // its owner when the book was opened
  std::string from;                    // first day of a fixed budget
  Instant since{};                     // when it was opened
  std::map<std::string, Money> spent;  // by period, minus credits; at most kPeriodsKept
  std::vector<DaySpent> days;          // ascending; the last kForecastDays + 1 with charges
  std::string period;                  // the period to which `told` refers; "" = none
  std::uint32_t told = 0;  // per cent: the greatest threshold that was announced in the period
  bool fold_due = false;   // set if State's Unfolded lists it; not durable
  GANTRY_FIELDS(FIELD(1, tenant), FIELD(2, project), FIELD(3, user), FIELD(4, from),
                FIELD(5, since), FIELD(6, spent), FIELD(7, days), FIELD(8, period), FIELD(9, told))
};

// A budget in force, derived from its document.
struct BudgetAccount {
  tenancy::Budget budget;
  Linked<BudgetBook> book;             // in BudgetState::books
  TimeZone zone;                       // time zone of its tenant
  std::optional<Instant> from, until;  // only for a fixed budget
  Money increase;                      // approved increases in force
  Money reserved;                      // the highest cost that running jobs may still have
};

struct BudgetState {
  std::map<std::string, BudgetBook> books;             // by name
  std::map<std::uint64_t, proto::Increase> increases;  // by number
  std::uint64_t last_increase = 0;                     // highest number; derived
  // From the configuration, by an event: start and end of a job may take this long, and it may cost
  // that much more than its time limit allows.
  Duration kill_wait = seconds(30);
  Duration start_timeout = seconds(60);

  // Derived from the documents.
  std::map<std::string, BudgetAccount> accounts;  // addresses stay valid until documents change
  std::unordered_map<std::string, std::vector<Linked<BudgetAccount>>>
      by_tenant;  // by name of the budget
};

}  // namespace gantry::core
