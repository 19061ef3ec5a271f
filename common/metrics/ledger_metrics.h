// The ledger as metrics, in the text format of Prometheus (exposition formats, version 0.0.4): the
// controller's GET /metrics, and greport --metrics for the node exporter's textfile collector or
// anything else that reads it.
#pragma once

#include <string>

#include "common/proto/budget.h"
#include "common/proto/ledger.h"
#include "common/proto/tenancy_view.h"

namespace gantry {

// Counters are over all time, so the reply must be, by tenant, job_type and item at least.
std::string ledger_metrics(const proto::LedgerReply& ledger, const proto::TenantUsageReply& usage);

// Gauges of budgets, to stand behind these.
std::string budget_metrics(const proto::BudgetList& budgets);

}  // namespace gantry
