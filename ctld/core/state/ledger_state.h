// The ledger in State: prices and sums. The sums are durable (Table::ledger); the prices come from
// the documents.
#pragma once

#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/proto/ledger.h"
#include "ctld/core/state/bill.h"
#include "ctld/core/state/prices.h"

namespace gantry::core {

// The ledger has one sum for each combination of these.
struct LedgerParts {
  std::string period;   // "2026-11" or "2026-W47", in the tenant's time zone
  std::string tenant;   // without tenants: the partition
  std::string project;  // the tenant's name if the job names no project
  std::string user;
  std::string job_type;  // "batch", "array", "interactive"
  std::string pool;
  std::string item;
  std::string plan;
  std::string labels;  // labels of the jobs: lines KEY=VALUE, see money/report_labels.h; "" = none
  friend auto operator<=>(const LedgerParts&, const LedgerParts&) = default;
};

// The parts as one string that sorts in the same order: months first, then weeks. It has at most
// kMaxKeyBytes of the store, so very long names are cut.
std::string ledger_key(const LedgerParts& parts);
// All parts except the labels, which are stored in the sum.
LedgerParts ledger_parts(const std::string& key);

struct LedgerState {
  PriceTable prices;                                 // derived
  std::map<std::string, LedgerSum> sums;             // by ledger_key()
  std::map<std::string, proto::PostedBatch> posted;  // by name
  // Sums over all months by tenant, type of job and item, for counters in metrics. Derived from
  // `sums`.
  std::map<std::array<std::string, 3>, LedgerSum> totals;
  std::map<std::string, std::set<std::string>> labels;  // labels in the sums, by tenant; derived
};

}  // namespace gantry::core
