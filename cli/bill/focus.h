// The ledger as a bill in the columns of FOCUS, the FinOps Open Cost and Usage Specification 1.0
// (https://focus.finops.org/focus-specification/v1-0/), for tools that read clouds' bills.
#pragma once

#include <string>

#include "common/proto/ledger.h"

namespace gantry::cli {

// A CSV cell as RFC 4180 defines it. A text that is no number, but that a spreadsheet would treat
// as a formula, is prefixed with '.
std::string csv_cell(const std::string& raw);

// The bill as CSV: one line for each row of the ledger, and one for the credit of a row that has
// one. The ledger must have been asked for by month or week, and divided by all columns that a
// ledger has. The begin and end of a period are midnights in the tenant's time zone, but written as
// if they were UTC.
std::string focus_csv(const proto::LedgerReply& reply, bool header);

}  // namespace gantry::cli
