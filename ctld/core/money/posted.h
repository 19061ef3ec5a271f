// Charges besides jobs: what was metered elsewhere and imported, and the costs that all tenants
// share, which are posted when a month is over.
//
// Shared costs (PriceBook::overhead) of a month are divided among the tenants in proportion to what
// their jobs cost in it; the parts add up to the whole exactly. Posted once, they stay: a book that
// changes later changes no month that is over. They are those of the book in force when the month
// ends, and the first month is the one in which a book with overhead was applied.
#pragma once

#include "ctld/core/context.h"

namespace gantry::core {

// After the end of a month, in the cluster's time zone, until it is over for every tenant.
inline constexpr Duration kMonthMargin = hours(36);

// Posts the months that are over; sets rt.month_due.
void close_months(Context& ctx);

}  // namespace gantry::core
