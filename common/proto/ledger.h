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
  std::string item;                // "cpu", "memory", "scratch", "io", "net", "gpu:a100:1g.10gb"
  std::string plan;                // plan of the price book; "" = on demand
  Held cpu, memory, scratch, gpu;  // a GPU slice counts as its part of a GPU
  Held credited_gpu;               // part of `gpu` that is credited
  Money cost;                      // of all that was held
  Money credit;                    // part of the cost that is credited
  std::uint64_t runs = 0;          // attempts that ended in the period
  Money list;                      // cost without plans and hours of the day
  Money waste;                     // part of the cost: what ended attempts held but did not use
  Held idle_cpu, idle_memory;      // what was not used of `cpu` and `memory`
  Held idle_gpu;                   // what was not used of `gpu`, as far as the driver tells
  std::uint64_t starts = 0;        // starts in the period
  Duration waited{};               // time in the queue, summed over all starts
  Held metered;                    // hours: amount of what `item` ("meter:...") counts
  Money overhead;                  // part of the cost: shares of the costs that all tenants share
  std::string label;               // value of the tenant's label that was asked for
  std::string labels;              // of the jobs, as far as they are reported: KEY=VALUE,...
  std::string job_label;           // value of the jobs' label that was asked for
  Held io, net;                    // hours of a GB/s, and of a Gbit/s
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
    v(17, "list", s.list);
    v(18, "waste", s.waste);
    v(19, "idle_cpu", s.idle_cpu);
    v(20, "idle_memory", s.idle_memory);
    v(21, "starts", s.starts);
    v(22, "waited", s.waited);
    v(23, "metered", s.metered);
    v(24, "overhead", s.overhead);
    v(25, "label", s.label);
    v(26, "idle_gpu", s.idle_gpu);
    v(27, "labels", s.labels);
    v(28, "job_label", s.job_label);
    v(29, "io", s.io);
    v(30, "net", s.net);
  }
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
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "period", s.period);
    v(2, "cost", s.cost);
    v(3, "earned", s.earned);
  }
};

struct LedgerReply {
  std::vector<LedgerRow> rows;  // sorted by the columns that were asked for
  std::string currency;         // "" = there are no prices
  std::string zone;             // where months end, except for tenants with a zone of their own
  Instant now{};
  std::vector<Recovery> recovery;  // by month; for operators, if the platform's cost is known
  std::string issuer;              // of invoices; "" = no price book says
  std::string tenant_zone;         // where months end for the one tenant asked for; "" = several
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "rows", s.rows);
    v(2, "currency", s.currency);
    v(3, "zone", s.zone);
    v(4, "now", s.now);
    v(5, "recovery", s.recovery);
    v(6, "issuer", s.issuer);
    v(7, "tenant_zone", s.tenant_zone);
  }
};

// ---- what is charged besides jobs

struct PostedCharge {
  std::string period, week;  // "2026-11", "2026-W47", in the tenant's time zone
  std::string tenant;
  std::string project;      // "" = the tenant's own
  std::string user;         // "" = nobody in particular
  std::string item;         // "meter:NAME", "overhead:NAME"
  std::int64_t amount = 0;  // thousandths of what the meter counts; negative: a correction
  Money cost;
  friend bool operator==(const PostedCharge&, const PostedCharge&) = default;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "period", s.period);
    v(2, "week", s.week);
    v(3, "tenant", s.tenant);
    v(4, "project", s.project);
    v(5, "user", s.user);
    v(6, "item", s.item);
    v(7, "amount", s.amount);
    v(8, "cost", s.cost);
  }
};

struct PostedBatch {
  std::string name;    // of the import; "month:2026-11" for shared costs
  std::string digest;  // digest of the imported lines, hexadecimal
  std::string by;      // who imported it; "" = the controller
  Instant at{};
  std::uint64_t lines = 0;
  Money cost;
  friend bool operator==(const PostedBatch&, const PostedBatch&) = default;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "name", s.name);
    v(2, "digest", s.digest);
    v(3, "by", s.by);
    v(4, "at", s.at);
    v(5, "lines", s.lines);
    v(6, "cost", s.cost);
  }
};

struct MeterLine {
  std::uint32_t line = 0;  // line of the file, for error messages
  std::string date;        // local: "2026-11-30"; the prices of the day's first moment apply
  std::string tenant;
  std::string project;  // "" = the tenant's own
  std::string user;     // "" = nobody in particular
  std::string meter;
  std::int64_t amount = 0;  // thousandths
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "line", s.line);
    v(2, "date", s.date);
    v(3, "tenant", s.tenant);
    v(4, "project", s.project);
    v(5, "user", s.user);
    v(6, "meter", s.meter);
    v(7, "amount", s.amount);
  }
};

// Charges lines of a meter; for platform admins. Either all lines are charged, or none. A batch
// that exists already is not charged again: with the same digest the first answer is repeated, with
// another it is refused.
struct ImportMeter {
  std::string name;  // of the batch, 1..128 bytes
  std::string digest;
  bool check = false;  // only compute what it would cost; charge nothing
  std::vector<MeterLine> lines;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "name", s.name);
    v(2, "digest", s.digest);
    v(3, "check", s.check);
    v(4, "lines", s.lines);
  }
};

struct ListMeters {  // the batches, newest first; for operators
  template <class Self, class V>
  static void fields(Self&, V&&) {}
};

struct MeterReply {
  std::vector<PostedBatch> batches;
  std::string currency;
  bool again = false;  // it had been imported before
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "batches", s.batches);
    v(2, "currency", s.currency);
    v(3, "again", s.again);
  }
};

}  // namespace gantry::proto
