// Writes the ledger as metrics in Prometheus's text format (exposition formats, version 0.0.4). It
// serves the controller's GET /metrics, and greport --metrics for the node exporter's textfile
// collector or anything else that reads the format.
#pragma once

#include <string>

#include "common/proto/budget.h"
#include "common/proto/ledger.h"
#include "common/proto/tenancy_view.h"

namespace gantry {

// Counters of the ledger. They count over all time, so the reply must cover all periods, by tenant,
// job_type and item at least.
std::string ledger_metrics(const proto::LedgerReply& ledger, const proto::TenantUsageReply& usage);

// Gauges of budgets, to be appended to the counters.
std::string budget_metrics(const proto::BudgetList& budgets);

}  // namespace gantry
