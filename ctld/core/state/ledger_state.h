// The ledger in State: prices and sums. Durable are the sums (Table::ledger); prices come from the
// documents.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "common/proto/ledger.h"
#include "ctld/core/state/bill.h"
#include "ctld/core/state/prices.h"

namespace gantry::core {

// By what the ledger keeps sums apart.
struct LedgerParts {
  std::string period;   // "2026-11" or "2026-W47", in the tenant's time zone
  std::string tenant;   // or partition
  std::string project;  // the tenant's name where the job names none
  std::string user;
  std::string job_type;  // "batch", "array", "interactive"
  std::string pool;
  std::string item;
  std::string plan;
  friend auto operator<=>(const LedgerParts&, const LedgerParts&) = default;
};

// One string whose order is that of the parts: months first, then weeks. At most kMaxKeyBytes of
// the store: very long names are cut.
std::string ledger_key(const LedgerParts& parts);
LedgerParts ledger_parts(const std::string& key);

struct LedgerState {
  PriceTable prices;                                 // derived
  std::map<std::string, LedgerSum> sums;             // by ledger_key()
  std::map<std::string, proto::PostedBatch> posted;  // by name
  // Of all months: by tenant, type of job and item, for counters. Derived from the sums.
  std::map<std::array<std::string, 3>, LedgerSum> totals;
};

}  // namespace gantry::core
