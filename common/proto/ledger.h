// Reading the ledger: what was held and what it cost, summed by month or week, and by the columns
// that the asker chooses. Client to ctld, and the answer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/fields.h"
#include "common/money/money.h"
#include "common/time/time.h"

namespace gantry::proto {

// Users without a role in a tenant see their own rows, users with a role see the tenant's, and
// administrators see all. Running jobs are counted up to now.
struct QueryLedger {
  std::string first;  // period: a month "2026-11" or an ISO week "2026-W47"
  std::string last;   // of the same kind, not before `first`
  // Names of LedgerRow's columns by which to divide the sums, "label:KEY" for the tenants' labels
  // of a key, and "job-label:KEY" for those of the jobs; none = one total.
  std::vector<std::string> by;
  std::vector<std::string> tenants;  // empty = all
  std::vector<std::string> projects, users;
  GANTRY_FIELDS(FIELD(1, first), FIELD(2, last), FIELD(3, by), FIELD(4, tenants),
                FIELD(5, projects), FIELD(6, users))
};

struct LedgerRow {     // columns that were not requested are ""
  std::string period;  // in the tenant's time zone
  std::string tenant;  // or partition
  std::string project;
  std::string user;
  std::string job_type;            // "batch", "array", "interactive"
  std::string pool;                // node pool; "" = none
  std::string item;                // "cpu", "memory", "scratch", "io", "net", "gpu:a100:1g.10gb"
  std::string plan;                // plan of the price book; "" = on demand
  Held cpu, memory, scratch, gpu;  // a GPU slice counts as its part of a GPU
  Held credited_gpu;               // part of `gpu` that is credited
  Money cost;                      // cost of everything held
  Money credit;                    // part of the cost that is credited
  std::uint64_t runs = 0;          // attempts that ended in the period
  Money list;                      // cost without plans and hours of the day
  Money waste;                     // part of the cost: what ended attempts held but did not use
  Held idle_cpu, idle_memory;      // unused part of `cpu` and `memory`
  Held idle_gpu;                   // unused part of `gpu`, if the driver reports it
  std::uint64_t starts = 0;        // starts in the period
  Duration waited{};               // time in the queue, summed over all starts
  Held metered;                    // hours: amount of what `item` ("meter:...") counts
  Money overhead;                  // part of the cost: shares of the costs that all tenants share
  std::string label;               // value of the requested label of the tenant
  std::string labels;              // reported labels of the jobs: KEY=VALUE,...
  std::string job_label;           // value of the requested label of the jobs
  Held io, net;                    // hours of a GB/s, and of a Gbit/s
  GANTRY_FIELDS(FIELD(1, period), FIELD(2, tenant), FIELD(3, project), FIELD(4, user),
                FIELD(5, job_type), FIELD(6, pool), FIELD(7, item), FIELD(8, plan), FIELD(9, cpu),
                FIELD(10, memory), FIELD(11, scratch), FIELD(12, gpu), FIELD(13, credited_gpu),
                FIELD(14, cost), FIELD(15, credit), FIELD(16, runs), FIELD(17, list),
                FIELD(18, waste), FIELD(19, idle_cpu), FIELD(20, idle_memory), FIELD(21, starts),
                FIELD(22, waited), FIELD(23, metered), FIELD(24, overhead), FIELD(25, label),
                FIELD(26, idle_gpu), FIELD(27, labels), FIELD(28, job_label), FIELD(29, io),
                FIELD(30, net))
};

// The sum of a row in which that item is counted; null: nothing is held of it (a shared cost).
constexpr Held LedgerRow::*held_member(std::string_view item) {
  if (item == "cpu") return &LedgerRow::cpu;
  if (item == "memory") return &LedgerRow::memory;
  if (item == "scratch") return &LedgerRow::scratch;
  if (item == "io") return &LedgerRow::io;
  if (item == "net") return &LedgerRow::net;
  if (item.starts_with("gpu:")) return &LedgerRow::gpu;
  return item.starts_with("meter:") ? &LedgerRow::metered : nullptr;
}

// The income of a platform: what all tenants are charged, minus credits, compared with its cost.
struct Recovery {
  std::string period;
  Money cost;
  Money earned;
  GANTRY_FIELDS(FIELD(1, period), FIELD(2, cost), FIELD(3, earned))
};

struct LedgerReply {
  std::vector<LedgerRow> rows;  // sorted by the columns that were asked for
  std::string currency;         // "" = there are no prices
  std::string zone;             // where months end, except for tenants with their own time zone
  Instant now{};
  std::vector<Recovery> recovery;  // by month; for operators, if the platform's cost is known
  std::string issuer;              // issuer of invoices; "" = no price book names one
  std::string tenant_zone;         // time zone for the one requested tenant; "" = several tenants
  GANTRY_FIELDS(FIELD(1, rows), FIELD(2, currency), FIELD(3, zone), FIELD(4, now),
                FIELD(5, recovery), FIELD(6, issuer), FIELD(7, tenant_zone))
};

// ---- what is charged besides jobs

struct PostedCharge {
  std::string period, week;  // "2026-11", "2026-W47", in the tenant's time zone
  std::string tenant;
  std::string project;      // "" = the tenant's own
  std::string user;         // "" = no particular user
  std::string item;         // "meter:NAME", "overhead:NAME"
  std::int64_t amount = 0;  // thousandths of what the meter counts; negative: a correction
  Money cost;
  friend bool operator==(const PostedCharge&, const PostedCharge&) = default;
  GANTRY_FIELDS(FIELD(1, period), FIELD(2, week), FIELD(3, tenant), FIELD(4, project),
                FIELD(5, user), FIELD(6, item), FIELD(7, amount), FIELD(8, cost))
};

struct PostedBatch {
  std::string name;    // name of the import; "month:2026-11" for shared costs
  std::string digest;  // digest of the imported lines, hexadecimal
  std::string by;      // who imported it; "" = the controller
  Instant at{};
  std::uint64_t lines = 0;
  Money cost;
  friend bool operator==(const PostedBatch&, const PostedBatch&) = default;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, digest), FIELD(3, by), FIELD(4, at), FIELD(5, lines),
                FIELD(6, cost))
};

struct MeterLine {
  std::uint32_t line = 0;  // line of the file, for error messages
  std::string date;        // local: "2026-11-30"; the prices of the day's first moment apply
  std::string tenant;
  std::string project;  // "" = the tenant's own
  std::string user;     // "" = no particular user
  std::string meter;
  std::int64_t amount = 0;  // thousandths
  GANTRY_FIELDS(FIELD(1, line), FIELD(2, date), FIELD(3, tenant), FIELD(4, project), FIELD(5, user),
                FIELD(6, meter), FIELD(7, amount))
};

// Charges lines of a meter; for platform admins. Either all lines are charged, or none. A batch
// that exists already is not charged again: with the same digest the first answer is repeated, with
// another it is refused.
struct ImportMeter {
  std::string name;  // name of the batch, 1..128 bytes
  std::string digest;
  bool check = false;  // only compute what it would cost; charge nothing
  std::vector<MeterLine> lines;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, digest), FIELD(3, check), FIELD(4, lines))
};

struct ListMeters {  // the batches, newest first; for operators
  GANTRY_FIELDS()
};

struct MeterReply {
  std::vector<PostedBatch> batches;
  std::string currency;
  bool again = false;  // true if it had been imported before
  GANTRY_FIELDS(FIELD(1, batches), FIELD(2, currency), FIELD(3, again))
};

}  // namespace gantry::proto
