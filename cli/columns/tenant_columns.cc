#include "cli/columns/tenant_columns.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/job/job_spec.h"
#include "common/text/text.h"
#include "config/tenancy/amounts.h"

namespace gantry::cli {
namespace {

using O = std::string&;
using Tenant = const proto::TenantUse&;
using Quota = const QuotaRow&;
using Share = const proto::ShareRow&;
using Priority = const proto::PriorityRow&;

std::string amount(Resource resource, std::int64_t value) {
  const bool negative = value < 0;
  const std::int64_t size = negative ? -value : value;
  const bool bytes = resource == Resource::memory || resource == Resource::scratch;
  return (negative ? "-" : "") +
         (bytes ? format_memory_rounded(size) : tenancy::show_amount(resource, size));
}

std::string_view word_of(Resource resource) {
  for (const auto& [r, key] : tenancy::kResourceKeys)
    if (r == resource) return key;
  return "?";
}

// ---- tenants

// Text like "48+16/64": used of its own quota, borrowed, nominal; only "48" without quota.
void put_use(O o, Tenant t, Resource resource) {
  for (const proto::QuotaUse& cell : t.cells) {
    if (cell.resource != resource || !cell.flavor.empty()) continue;
    o += amount(resource, cell.used - cell.borrowed);
    if (cell.borrowed > 0) o += "+" + amount(resource, cell.borrowed);
    o += "/" + amount(resource, cell.nominal);
    return;
  }
  std::int64_t nominal = 0;
  bool any = false;
  for (const proto::QuotaUse& cell : t.cells)
    if (cell.resource == resource) {
      any = true;
      nominal += cell.nominal;
    }
  o += amount(resource, t.used[resource]);
  if (any) o += "/" + amount(resource, nominal);
}

void put_count(O o, std::uint64_t count, const std::optional<std::uint32_t>& most) {
  o += std::to_string(count);
  if (most) o += fmt::format("/{}", *most);
}

constexpr Column<proto::TenantUse> kTenantColumns[] = {
    {'n', "Tenant", "TENANT", [](O o, Tenant t) { o += t.name; }},
    {'c', "Cohort", "COHORT", [](O o, Tenant t) { o += t.parent.empty() ? "-" : t.parent; }},
    {'q', "Queued", "QUEUED", [](O o, Tenant t) { put_count(o, t.queued, t.max_queued); }},
    {'r', "Running", "RUNNING", [](O o, Tenant t) { put_count(o, t.running, t.max_running); }},
    {'g', "GPU", {}, [](O o, Tenant t) { put_use(o, t, Resource::gpu); }},
    {'p', "CPU", {}, [](O o, Tenant t) { put_use(o, t, Resource::cpu); }},
    {'m', "Memory", "MEMORY", [](O o, Tenant t) { put_use(o, t, Resource::memory); }},
    {'d', "Scratch", "SCRATCH", [](O o, Tenant t) { put_use(o, t, Resource::scratch); }},
    {'i', "Io", "IO", [](O o, Tenant t) { put_use(o, t, Resource::io); }},
    {'w', "Net", "NET", [](O o, Tenant t) { put_use(o, t, Resource::net); }},
    {'s', "State", "STATE", [](O o, Tenant t) {
       o += !t.accepts_jobs ? "down" : t.max_queued == 0u ? "closing" : "open";
     }}};

// ---- quota

// The most that this quota allows to hold. If no limit is set, it is the nominal amount, or what is
// used and available now if that is more.
std::int64_t most_of(Quota q) {
  const proto::QuotaUse& cell = *q.cell;
  return cell.limit.value_or(std::max(cell.nominal, cell.used + cell.available));
}

std::int64_t percent_of(Quota q) {
  const std::int64_t limit = most_of(q);
  if (limit <= 0) return q.cell->used > 0 ? 100 : 0;
  return static_cast<std::int64_t>(static_cast<__int128>(q.cell->used) * 100 / limit);
}

void put_share(O o, Quota q) {
  const std::int64_t percent = percent_of(q);
  if (q.bars) o += bar(q.cell->used, q.cell->nominal, most_of(q), 20) + " ";
  o += fmt::format("{}%", percent);
}

Colour colour_of(Quota q) {
  const std::int64_t percent = percent_of(q);
  if (q.cell->available < 0 || percent >= 100) return Colour::red;
  return percent >= 85 ? Colour::yellow : Colour::none;
}

void put_cell(O o, Quota q, std::int64_t value) {
  o += amount(q.cell->resource, value);
}

constexpr Column<QuotaRow> kQuotaColumns[] = {
    {'n', "Tenant", "TENANT",
     [](O o, Quota q) {
       if (q.first) o += q.whose->name + (q.whose->is_cohort ? " (cohort)" : "");
     }},
    {'R', "ResourceOf", "RESOURCE",
     [](O o, Quota q) {
       o += word_of(q.cell->resource);
       if (!q.cell->flavor.empty()) o += ":" + q.cell->flavor;
     }},
    {'r', "Resource", "RESOURCE", [](O o, Quota q) { o += word_of(q.cell->resource); }},
    {'f', "Flavor", "FLAVOR",
     [](O o, Quota q) { o += q.cell->flavor.empty() ? "all" : q.cell->flavor; }},
    {'u', "Used", "USED", [](O o, Quota q) { put_cell(o, q, q.cell->used); }},
    {'o', "Nominal", "NOMINAL", [](O o, Quota q) { put_cell(o, q, q.cell->nominal); }},
    {'b', "Borrowed", "BORROWED", [](O o, Quota q) { put_cell(o, q, q.cell->borrowed); }},
    {'l', "Limit", "LIMIT",
     [](O o, Quota q) {
       if (q.cell->limit)
         put_cell(o, q, *q.cell->limit);
       else
         o += "-";
     }},
    {'L', "Lent", "LENT",
     [](O o, Quota q) {
       put_cell(o, q, q.cell->lent);
       if (q.cell->lend) o += "/" + amount(q.cell->resource, *q.cell->lend);
     }},
    {'a', "Available", "FREE", [](O o, Quota q) { put_cell(o, q, q.cell->available); }},
    coloured<QuotaRow>({'p', "Use", "USE", put_share}, colour_of)};

// ---- shares

// Rounds for display: 12345.6 -> "12346", 1234567.8 -> "1.23M".
std::string rounded(double value) {
  static constexpr std::string_view kUnits = " kMGTPE";
  std::size_t unit = 0;
  while (value >= 99'999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f}", value) : fmt::format("{:.0f}{}", value, kUnits[unit]);
}

std::string level(const std::optional<double>& value) {
  return value ? fmt::format("{:.3g}", *value) : "inf";
}

constexpr Column<proto::ShareRow> kShareColumns[] = {
    {'n', "Name", "NAME",
     [](O o, Share s) {
       o += !s.user.empty() ? "    " + s.user : !s.project.empty() ? "  " + s.project : s.tenant;
     }},
    {'s', "Shares", "SHARES",
     [](O o, Share s) {
       o += s.project.empty() ? tenancy::show_thousandths(s.shares) : std::to_string(s.shares);
     }},
    {'S', "Share", "SHARE", [](O o, Share s) { o += fmt::format("{:.1f}%", s.share * 100); }},
    {'u', "Usage", "USAGE", [](O o, Share s) { o += rounded(s.usage); }},
    {'U', "Part", "PART", [](O o, Share s) { o += fmt::format("{:.1f}%", s.part * 100); }},
    {'R', "Rate", "RATE", [](O o, Share s) { o += fmt::format("{:.2f}", s.rate); }},
    {'f', "Level", "LEVEL", [](O o, Share s) { o += level(s.level); }},
    {'b', "Borrows", "BORROWS",
     [](O o, Share s) {
       if (s.project.empty())
         o += s.borrows == INT64_MAX ? "inf"
                                     : fmt::format("{:.3f}", static_cast<double>(s.borrows) / 1e6);
       else
         o += "-";
     }},
    {'k', "Place", "PLACE", [](O o, Share s) { o += std::to_string(s.place); }},
    {'q', "Queued", "QUEUED", [](O o, Share s) { o += std::to_string(s.queued); }},
    {'r', "Running", "RUNNING", [](O o, Share s) { o += std::to_string(s.running); }}};

// ---- priorities

std::string job_of(Priority p) {
  if (p.array_job.value() != 0 && !p.array_tasks.empty())
    return fmt::format("{}_[{}]", p.array_job.value(), p.array_tasks);
  return std::to_string(p.job.value());
}

constexpr Column<proto::PriorityRow> kPriorityColumns[] = {
    {'o', "Place", "PLACE", [](O o, Priority p) { o += std::to_string(p.place); }},
    {'i', "JobID", "JOBID", [](O o, Priority p) { o += job_of(p); }},
    {'u', "User", "USER", [](O o, Priority p) { o += p.user; }},
    {'a', "Account", "ACCOUNT", [](O o, Priority p) { o += p.account; }},
    {'P', "Partition", "PARTITION", [](O o, Priority p) { o += p.partition; }},
    {'d', "PartitionPriority", "PARTPRIO",
     [](O o, Priority p) { o += std::to_string(p.partition_priority); }},
    {'c', "Class", "CLASS", [](O o, Priority p) { o += p.priority_class; }},
    {'r', "Rank", "RANK",
     [](O o, Priority p) {
       o += std::to_string(p.rank);
       if (p.terms.empty() && p.rank != p.class_value)
         o += fmt::format("(+{})", p.rank - p.class_value);
     }},
    {'b', "Borrows", "BORROWS",
     [](O o, Priority p) {
       o += p.borrow_levels == 0 ? "no" : fmt::format("yes:{}", p.borrow_levels);
     }},
    {'v', "Share", "SHARE",
     [](O o, Priority p) {
       if (p.share_values.empty()) o += "-";
       for (std::size_t i = 0; i < p.share_values.size(); ++i) {
         const std::int64_t value = p.share_values[i];
         o += i == 0 ? "" : "/";
         o += value == INT64_MAX ? "inf" : fmt::format("{:.3f}", static_cast<double>(value) / 1e6);
       }
     }},
    {'f', "ProjectLevel", "PROJECT", [](O o, Priority p) { o += level(p.project_level); }},
    {'F', "UserLevel", "FAIR", [](O o, Priority p) { o += level(p.user_level); }},
    {'p', "Priority", "PRIORITY", [](O o, Priority p) { o += std::to_string(p.priority); }},
    {'w', "Terms", "TERMS",
     [](O o, Priority p) {
       if (p.terms.empty()) o += "-";
       for (const proto::PriorityTerm& term : p.terms)
         o += fmt::format("{}{} {}*{:.3f}", &term == p.terms.data() ? "" : " + ", term.name,
                          term.weight, term.factor);
     }},
    {'t', "Since", "SINCE", [](O o, Priority p) { o += format_time(p.since); }}};

}  // namespace

std::span<const Column<proto::TenantUse>> tenant_columns() {
  return kTenantColumns;
}
std::span<const Column<QuotaRow>> quota_columns() {
  return kQuotaColumns;
}
std::span<const Column<proto::ShareRow>> share_columns() {
  return kShareColumns;
}
std::span<const Column<proto::PriorityRow>> priority_columns() {
  return kPriorityColumns;
}

std::string bar(std::int64_t used, std::int64_t nominal, std::int64_t limit, int width) {
  const std::int64_t whole = std::max({limit, used, std::int64_t{1}});
  const auto cells = [&](std::int64_t amount) {
    const auto exact = static_cast<__int128>(std::clamp<std::int64_t>(amount, 0, whole)) * width;
    return static_cast<std::size_t>((exact + whole / 2) / whole);
  };
  const std::size_t own = cells(std::min(used, nominal));
  const std::size_t all = std::max(cells(used), own);
  return "[" + std::string(own, '#') + std::string(all - own, '+') +
         std::string(static_cast<std::size_t>(width) - all, '.') + "]";
}

namespace {

using OfAccess = const proto::AccessRow&;
constexpr Column<proto::AccessRow> kAccessColumns[] = {
    {'t', "Tenant", "TENANT",
     [](Out o, OfAccess r) { o += r.tenant.empty() ? "(cluster)" : r.tenant; }},
    {'u', "Who", "WHO", [](Out o, OfAccess r) { o += subject_of(r); }},
    {'r', "Role", "ROLE", [](Out o, OfAccess r) { o += r.role; }},
    {'x', "Rights", "RIGHTS",
     [](Out o, OfAccess r) { o += fmt::format("{}", fmt::join(r.rights, ",")); }},
    {'g', "GPUs", "GPUS",
     [](Out o, OfAccess r) {
       o += !r.gpus                ? "none"
            : r.gpu_models.empty() ? "all"
                                   : fmt::format("{}", fmt::join(r.gpu_models, ","));
     }},
    {'e', "Until", "UNTIL", [](Out o, OfAccess r) { o += r.until ? format_time(*r.until) : "-"; }},
    {'s', "Since", "SINCE", [](Out o, OfAccess r) { o += r.since ? format_time(*r.since) : "-"; }},
    {'b', "By", "BY", [](Out o, OfAccess r) { o += r.by.empty() ? "-" : r.by; }},
    {'f', "From", "FROM", [](Out o, OfAccess r) { o += r.from; }},
    {'R', "Revision", "REVISION",
     [](Out o, OfAccess r) { o += r.revision ? std::to_string(*r.revision) : "-"; }}};

}  // namespace

std::span<const Column<proto::AccessRow>> access_columns() {
  return kAccessColumns;
}

std::string subject_of(const proto::AccessRow& row) {
  return row.user.empty() ? "group " + row.group : row.user;
}

}  // namespace gantry::cli
