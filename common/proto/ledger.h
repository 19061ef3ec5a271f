// Reading the ledger: what was held and what it cost, summed up by month or week and by whatever
// the asker wants to see apart. Client to ctld, and the answer.
#pragma once

#include <string>
#include <vector>

#include "common/codec/fields.h"
#include "common/money.h"
#include "common/time.h"

namespace gantry::proto {

// A person without a role in a tenant sees what is theirs, a role in it shows the tenant's, and
// administrators see all. Jobs that run are counted up to now.
struct QueryLedger {
  std::string first;                 // period: a month "2026-11" or an ISO week "2026-W47"
  std::string last;                  // of the same kind, not before `first`
  std::vector<std::string> by;       // columns of LedgerRow by name, to keep apart; none = a total
  std::vector<std::string> tenants;  // none = all
  std::vector<std::string> projects, users;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "first", s.first);
    v(2, "last", s.last);
    v(3, "by", s.by);
    v(4, "tenants", s.tenants);
    v(5, "projects", s.projects);
    v(6, "users", s.users);
  }
};

struct LedgerRow {     // a column that was not asked for is ""
  std::string period;  // in the tenant's time zone
  std::string tenant;  // or partition
  std::string project;
  std::string user;
  std::string job_type;            // "batch", "array", "interactive"
  std::string pool;                // node pool; "" = none
  std::string item;                // "cpu", "memory", "scratch", "gpu:a100", "gpu:a100:1g.10gb"
  std::string plan;                // of the price book; "" = on demand
  Held cpu, memory, scratch, gpu;  // GPU in GPUs: a slice is its part of one
  Held credited_gpu;               // of `gpu`
  Money cost;                      // of all that was held
  Money credit;                    // of that
  std::uint64_t runs = 0;          // attempts that ended in the period
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "period", s.period);
    v(2, "tenant", s.tenant);
    v(3, "project", s.project);
    v(4, "user", s.user);
    v(5, "job_type", s.job_type);
    v(6, "pool", s.pool);
    v(7, "item", s.item);
    v(8, "plan", s.plan);
    v(9, "cpu", s.cpu);
    v(10, "memory", s.memory);
    v(11, "scratch", s.scratch);
    v(12, "gpu", s.gpu);
    v(13, "credited_gpu", s.credited_gpu);
    v(14, "cost", s.cost);
    v(15, "credit", s.credit);
    v(16, "runs", s.runs);
  }
};

struct LedgerReply {
  std::vector<LedgerRow> rows;  // sorted by the columns that were asked for
  std::string currency;         // "" = there are no prices
  std::string zone;             // where months end, but for tenants with a zone of their own
  Instant now{};
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "rows", s.rows);
    v(2, "currency", s.currency);
    v(3, "zone", s.zone);
    v(4, "now", s.now);
  }
};

}  // namespace gantry::proto
