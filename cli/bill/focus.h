// The ledger as a bill in the columns of FOCUS, the FinOps Open Cost and Usage Specification 1.0
// (https://focus.finops.org/focus-specification/v1-0/), for tools that read clouds' bills.
#pragma once

#include <string>

#include "common/proto/ledger.h"

namespace gantry::cli {

// A cell as RFC 4180 has it; what is no number and a spreadsheet would take for a formula gets a '
// in front.
std::string csv_cell(const std::string& raw);

// A line for each row, and one for its credit: of months or weeks, kept apart by all columns of the
// ledger. A period's begin and end are midnights of the tenant's time zone, written as if they were
// UTC's.
std::string focus_csv(const proto::LedgerReply& reply, bool header);

}  // namespace gantry::cli
