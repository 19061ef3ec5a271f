// The ledger as metrics, in the text format of Prometheus (exposition formats, version 0.0.4), for
// its node exporter's textfile collector or anything else that reads it.
#pragma once

#include <string>

#include "common/proto/ledger.h"
#include "common/proto/tenancy_view.h"

namespace gantry::cli {

// Counters are over all time, so the reply must be, by tenant, job_type and item at least.
std::string ledger_metrics(const proto::LedgerReply& ledger, const proto::TenantUsageReply& usage);

}  // namespace gantry::cli
