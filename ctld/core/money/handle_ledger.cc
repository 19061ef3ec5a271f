// QueryLedger: the sums of the ledger and what running jobs add to them, narrowed to what the asker
// may see, and summed up by the columns that the asker names.
#include <algorithm>
#include <array>
#include <map>

#include <fmt/core.h>

#include "common/proto/ledger.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/access/roles.h"
#include "ctld/core/context.h"
#include "ctld/core/handler.h"
#include "ctld/core/money/ledger.h"
#include "ctld/core/money/report_labels.h"
#include "ctld/core/money/subject.h"
#include "ctld/core/request.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/tenant_submit.h"

namespace gantry::core {
namespace {

constexpr std::string_view kLabel = "label:";         // a label of the tenant
constexpr std::string_view kJobLabel = "job-label:";  // a label of the job
constexpr std::size_t kMaxLedgerRows = 50'000;        // rows in a reply

struct LedgerColumn {
  std::string_view name;
  std::string LedgerParts::*part;
};
constexpr std::array<LedgerColumn, 9> kLedgerColumns{{{"period", &LedgerParts::period},
                                                      {"tenant", &LedgerParts::tenant},
                                                      {"project", &LedgerParts::project},
                                                      {"user", &LedgerParts::user},
                                                      {"job_type", &LedgerParts::job_type},
                                                      {"pool", &LedgerParts::pool},
                                                      {"item", &LedgerParts::item},
                                                      {"plan", &LedgerParts::plan},
                                                      {"labels", &LedgerParts::labels}}};

// True for a month such as "2026-11" or a week such as "2026-W47".
bool is_period(std::string_view text) {
  const bool week = text.size() == 8 && text[5] == 'W';
  if (text.size() != (week ? 8u : 7u) || text[4] != '-') return false;
  const auto digits = [](std::string_view part) {
    return std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  const std::string_view number = text.substr(week ? 6 : 5);
  if (!digits(text.substr(0, 4)) || !digits(number)) return false;
  const int n = (number[0] - '0') * 10 + (number[1] - '0');
  return n >= 1 && n <= (week ? 53 : 12);
}

bool among(const std::vector<std::string>& list, const std::string& word) {
  return list.empty() || std::find(list.begin(), list.end(), word) != list.end();
}

class Report {
 public:
  Report(const Context& ctx, const Identity& who, const proto::QueryLedger& query)
      : state_(ctx.state), who_(who), query_(query), everything_(sees_all(ctx.state, who)) {}

  Result<void> choose_columns() {
    for (const std::string& name : query_.by) {
      if (name.starts_with(kLabel) && name.size() > kLabel.size() && label_.empty()) {
        label_ = name.substr(kLabel.size());
        continue;
      }
      if (name.starts_with(kJobLabel) && name.size() > kJobLabel.size() && job_label_.empty()) {
        job_label_ = name.substr(kJobLabel.size());
        continue;
      }
      const auto it = std::find_if(kLedgerColumns.begin(), kLedgerColumns.end(),
                                   [&](const LedgerColumn& c) { return c.name == name; });
      if (it == kLedgerColumns.end())
        return fail(ErrorCode::invalid_argument,
                    fmt::format("the ledger has no column \"{}\"; use period, tenant, project, "
                                "user, job_type, pool, item, plan, labels, one label:KEY or one "
                                "job-label:KEY",
                                name));
      columns_.push_back(it->part);
    }
    return {};
  }

  void add_sums() {
    const auto& sums = state_.ledger.sums;
    LedgerParts at;
    at.period = query_.first;
    for (auto it = sums.lower_bound(ledger_key(at)); it != sums.end();) {
      LedgerParts parts = ledger_parts(it->first);
      parts.labels = it->second.labels;
      if (parts.period.size() != query_.first.size() || parts.period > query_.last) break;
      if (!among(query_.tenants, parts.tenant)) {
        it = sums.lower_bound(next_tenant(parts));
        continue;
      }
      add(parts, it->second);
      ++it;
    }
  }

  void add_running(Instant now) {
    accrue(state_, now, [&](const LedgerParts& parts, const LedgerSum& more) {
      if (parts.period.size() != query_.first.size() || parts.period < query_.first ||
          parts.period > query_.last || !among(query_.tenants, parts.tenant))
        return;
      add(parts, more);
    });
  }

  Result<std::vector<proto::LedgerRow>> take() {
    if (rows_.size() > kMaxLedgerRows)
      return fail(ErrorCode::limit_exceeded,
                  fmt::format("that would be {} rows; ask for fewer periods, tenants or columns: "
                              "{} are the most",
                              rows_.size(), kMaxLedgerRows));
    std::vector<proto::LedgerRow> out;
    out.reserve(rows_.size());
    for (auto& [key, row] : rows_) {
      const LedgerParts& parts = key.first;
      row.label = key.second.first;
      row.job_label = key.second.second;
      row.labels = line_of_labels(parts.labels);
      row.period = parts.period;
      row.tenant = parts.tenant;
      row.project = parts.project;
      row.user = parts.user;
      row.job_type = parts.job_type;
      row.pool = parts.pool;
      row.item = parts.item;
      row.plan = parts.plan;
      out.push_back(std::move(row));
    }
    return out;
  }

 private:
  // The first key, in this period, of the next tenant that is asked for; or a key after all of
  // them.
  [[nodiscard]] std::string next_tenant(const LedgerParts& parts) const {
    LedgerParts to;
    to.period = parts.period;
    for (const std::string& tenant : query_.tenants)
      if (tenant > parts.tenant && (to.tenant.empty() || tenant < to.tenant)) to.tenant = tenant;
    if (to.tenant.empty()) to.tenant = "\x7f";  // sorts after every name
    return ledger_key(to);
  }

  [[nodiscard]] bool visible(const LedgerParts& parts) {
    if (everything_ || parts.user == who_.owner.user) return true;
    const auto [it, fresh] = seen_.try_emplace(parts.tenant, false);
    if (fresh) it->second = !who_.inside && has_right(state_, who_, parts.tenant, TenantRight::see);
    return it->second;
  }

  void add(const LedgerParts& parts, const LedgerSum& sum) {
    if (!among(query_.projects, parts.project) || !among(query_.users, parts.user)) return;
    if (!visible(parts)) return;
    LedgerParts key;
    for (std::string LedgerParts::*part : columns_) key.*part = parts.*part;
    proto::LedgerRow& row = rows_[{std::move(key), {label_of(parts.tenant), job_label_of(parts)}}];
    const std::int64_t unit = held_unit(parts.item);
    if (parts.item.starts_with("overhead:")) row.overhead += sum.cost;
    if (const auto held = proto::held_member(parts.item)) add_held(row.*held, sum.held, unit);
    if (parts.item.starts_with("gpu:")) add_held(row.credited_gpu, sum.credited, unit);
    if (parts.item == "cpu") add_held(row.idle_cpu, sum.wasted, unit);
    if (parts.item == "memory") add_held(row.idle_memory, sum.wasted, unit);
    if (parts.item.starts_with("gpu:")) add_held(row.idle_gpu, sum.wasted, unit);
    row.cost += sum.cost;
    row.credit += sum.credit;
    row.list += sum.list;
    row.waste += sum.waste;
    row.runs += sum.runs;
    row.starts += sum.starts;
    row.waited = row.waited + sum.waited;
  }

  // The tenant's present value of the label that is asked for.
  [[nodiscard]] std::string label_of(const std::string& tenant) const {
    const CompiledTenant* compiled = label_.empty() ? nullptr : state_.tenancy.tenant(tenant);
    if (compiled == nullptr) return "";
    const auto& labels = compiled->effective.labels;
    const auto it = labels.find(label_);
    return it == labels.end() ? "" : it->second;
  }

  [[nodiscard]] std::string job_label_of(const LedgerParts& parts) const {
    return job_label_.empty() ? std::string() : label_in(parts.labels, job_label_);
  }

  const State& state_;
  const Identity& who_;
  const proto::QueryLedger& query_;
  const bool everything_;
  std::vector<std::string LedgerParts::*> columns_;
  std::string label_, job_label_;  // keys of the labels that are asked for; "" = none
  using Labels = std::pair<std::string, std::string>;  // their values
  std::map<std::pair<LedgerParts, Labels>, proto::LedgerRow> rows_;
  std::map<std::string, bool> seen_;  // tenants in which the asker has a role
};

// Costs and income of the platform in months for which costs are known; for askers who see all
// tenants.
std::vector<proto::Recovery> recovery_of(const State& state, const proto::QueryLedger& query,
                                         Instant now) {
  const PriceTable& prices = state.ledger.prices;
  std::map<std::string, proto::Recovery> months;
  const auto earn = [&](const std::string& period, Money earned) {
    const auto [it, fresh] = months.try_emplace(period);
    if (fresh) {
      const std::int32_t year = std::stoi(period.substr(0, 4)), month = std::stoi(period.substr(5));
      const CivilDay next{month == 12 ? year + 1 : year, month == 12 ? 1 : month + 1, 1};
      const Instant end = prices.zone.instant_of(days_of(next) * 86'400) - microseconds(1);
      const tenancy::PriceBook* book = prices.at(std::min(end, now));
      it->second.period = period;
      if (book != nullptr) it->second.cost = book->platform_cost;
    }
    it->second.earned += earned;
  };
  LedgerParts at;
  at.period = query.first;
  const auto& sums = state.ledger.sums;
  for (auto it = sums.lower_bound(ledger_key(at)); it != sums.end(); ++it) {
    const LedgerParts parts = ledger_parts(it->first);
    if (parts.period.size() != query.first.size() || parts.period > query.last) break;
    earn(parts.period, it->second.cost - it->second.credit);
  }
  accrue(state, now, [&](const LedgerParts& parts, const LedgerSum& more) {
    if (parts.period.size() == query.first.size() && parts.period >= query.first &&
        parts.period <= query.last)
      earn(parts.period, more.cost);
  });
  std::vector<proto::Recovery> out;
  for (auto& [period, recovery] : months)
    if (recovery.cost > Money{}) out.push_back(std::move(recovery));
  return out;
}

// Turns "last-month" and the like into the name of the period, in the cluster's time zone.
std::string resolved(const std::string& period, const TimeZone& zone, Instant now) {
  const auto day_before = [&](std::int64_t day) {
    return zone.instant_of(day * 86'400) - seconds(1);
  };
  const std::int64_t local = zone.local_of(now);
  const std::int64_t today = local / 86'400;
  const CivilDay civil = civil_of(today);
  if (period == "this-month") return month_at(zone, now);
  if (period == "this-week") return week_at(zone, now);
  if (period == "last-month")
    return month_at(zone, day_before(days_of({civil.year, civil.month, 1})));
  if (period == "last-week") return week_at(zone, day_before(today - (weekday_of(today) + 6) % 7));
  return period;
}

}  // namespace

static void handle(Context& ctx, const ClientRequest& from, proto::QueryLedger&& m) {
  const PriceTable& prices = ctx.state.ledger.prices;
  for (std::string* period : {&m.first, &m.last}) *period = resolved(*period, prices.zone, ctx.now);
  if (!is_period(m.first) || !is_period(m.last) || m.first.size() != m.last.size() ||
      m.last < m.first)
    return refuse(ctx, from,
                  {ErrorCode::invalid_argument,
                   fmt::format("\"{}\" to \"{}\" are no periods of the ledger; use months as "
                               "2026-11, weeks as 2026-W47, or this-month, last-month, this-week, "
                               "last-week, the first one first",
                               m.first, m.last)});
  Report report(ctx, from.who, m);
  if (auto chosen = report.choose_columns(); !chosen) return refuse(ctx, from, chosen.error());
  report.add_sums();
  report.add_running(ctx.now);
  auto rows = report.take();
  if (!rows) return refuse(ctx, from, rows.error());
  proto::LedgerReply reply{
      std::move(*rows), prices.currency, prices.zone_name, ctx.now, {}, prices.issuer, {}};
  if (m.tenants.size() == 1) reply.tenant_zone = prices.zone_name_of(m.tenants.front());
  const bool costs = std::any_of(prices.books.begin(), prices.books.end(),
                                 [](const auto& b) { return b.book.platform_cost > Money{}; });
  const bool months = m.first.find('W') == std::string::npos;
  if (costs && months && sees_all(ctx.state, from.who))
    reply.recovery = recovery_of(ctx.state, m, ctx.now);
  ctx.reply(from, std::move(reply));
}

const Subject kLedgerMessages{.name = "ledger", .handlers = kHandlers<proto::QueryLedger>};

}  // namespace gantry::core
