// Charges that do not come from jobs: what was metered elsewhere and imported, and shared costs of
// all tenants, which are posted when a month is over.
//
// Shared costs (PriceBook::overhead) of a month are divided among the tenants in proportion to what
// their jobs cost in it; the parts add up exactly to the whole. The book in force at the end of the
// month counts. A posted month stays: a later change of the book does not change it. The first
// month is the one in which a book with overhead was applied.
#pragma once

#include "ctld/core/context.h"

namespace gantry::core {

// A month counts as over this long after its end in the cluster's time zone; then it is over for
// every tenant.
inline constexpr Duration kMonthMargin = hours(36);

// Posts the months that are over; sets BudgetMemory::month_due.
void close_months(Context& ctx);

}  // namespace gantry::core
