// ImportMeter, ListMeters, and the shared costs of months; see posted.h.
#include "ctld/core/money/posted.h"

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "common/assert.h"
#include "common/proto/ledger.h"
#include "common/text/text.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/apply.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_ledger.h"
#include "ctld/core/handler.h"
#include "ctld/core/money/ledger.h"
#include "ctld/core/money/memory.h"
#include "ctld/core/money/subject.h"
#include "ctld/core/request.h"
#include "ctld/core/runtime.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/tenants.h"

namespace gantry::core {
namespace {

using proto::PostedBatch;
using proto::PostedCharge;

constexpr std::string_view kMonthNames = "month:";  // how names of batches of shared costs begin
constexpr std::size_t kMostName = 128;              // bytes in the name of a batch
constexpr std::size_t kMostLines = 100'000;
constexpr std::int64_t kMostAmount = 1'000'000'000 * kThousandthsUnit;
constexpr std::string_view kMeters = "meter:";

// ---- months

struct Month {
  std::int32_t year = 1970;
  std::int32_t month = 1;
  [[nodiscard]] std::string name() const { return fmt::format("{:04}-{:02}", year, month); }
  [[nodiscard]] Month next() const {
    return month == 12 ? Month{year + 1, 1} : Month{year, month + 1};
  }
  [[nodiscard]] Month before() const {
    return month == 1 ? Month{year - 1, 12} : Month{year, month - 1};
  }
  [[nodiscard]] Instant begin(const TimeZone& zone) const {
    return zone.instant_of(days_of({year, month, 1}) * 86'400);
  }
  friend auto operator<=>(const Month&, const Month&) = default;
};

Month month_of(const TimeZone& zone, Instant t) {
  const std::int64_t local = zone.local_of(t);
  const CivilDay day = civil_of(local / 86'400 - (local % 86'400 < 0 ? 1 : 0));
  return {day.year, day.month};
}

// The newest month that is posted; nothing if none is.
std::optional<Month> last_posted(const State& state) {
  std::optional<Month> last;
  for (auto it = state.ledger.posted.lower_bound(std::string(kMonthNames));
       it != state.ledger.posted.end() && it->first.starts_with(kMonthNames); ++it) {
    const std::string name = it->first.substr(kMonthNames.size());
    last = Month{std::stoi(name.substr(0, 4)), std::stoi(name.substr(5, 2))};
  }
  return last;
}

bool is_job_item(std::string_view item) {
  return item.find(':') == std::string_view::npos || item.starts_with("gpu:");
}

// The cost of each tenant's jobs in a month.
std::map<std::string, Money> cost_of_jobs(const State& state, const std::string& month,
                                          Instant now) {
  std::map<std::string, Money> out;
  LedgerParts at;
  at.period = month;
  for (auto it = state.ledger.sums.lower_bound(ledger_key(at)); it != state.ledger.sums.end();
       ++it) {
    const LedgerParts parts = ledger_parts(it->first);
    if (parts.period != month) break;
    if (is_job_item(parts.item)) out[parts.tenant] += it->second.cost;
  }
  accrue(state, now, [&](const LedgerParts& parts, const LedgerSum& more) {
    if (parts.period == month) out[parts.tenant] += more.cost;
  });
  return out;
}

// Divides `sum` in proportion, in the order of names: each tenant gets the growth of the rounded
// running sum.
std::vector<PostedCharge> divided(const std::map<std::string, Money>& tenants, Money sum,
                                  const PostedCharge& as) {
  __int128 all = 0;
  for (const auto& [tenant, cost] : tenants) all += cost.micros;
  std::vector<PostedCharge> out;
  if (all <= 0) return out;
  __int128 so_far = 0;
  Money given;
  for (const auto& [tenant, cost] : tenants) {
    so_far += cost.micros;
    const Money up_to{static_cast<std::int64_t>((so_far * sum.micros + all / 2) / all)};
    PostedCharge& charge = out.emplace_back(as);
    charge.tenant = tenant;
    charge.cost = up_to - given;
    given = up_to;
    if (charge.cost == Money{}) out.pop_back();
  }
  return out;
}

void close_month(Context& ctx, Month month) {
  const PriceTable& prices = ctx.state.ledger.prices;
  const Instant last = month.next().begin(prices.zone) - microseconds(1);
  event::ChargesPosted e;
  e.batch.name = std::string(kMonthNames) + month.name();
  e.batch.at = ctx.now;
  PostedCharge as;
  as.period = month.name();
  as.week = week_at(prices.zone, last);
  if (const tenancy::PriceBook* book = prices.at(last); book != nullptr) {
    const auto tenants = cost_of_jobs(ctx.state, as.period, ctx.now);
    for (const auto& [name, sum] : book->overhead) {
      as.item = "overhead:" + name;
      for (PostedCharge& charge : divided(tenants, sum, as)) e.charges.push_back(std::move(charge));
    }
  }
  for (const PostedCharge& charge : e.charges) e.batch.cost += charge.cost;
  e.batch.lines = e.charges.size();
  ctx.record(e);
}

// ---- metering

struct Priced {
  PostedBatch batch;
  std::vector<PostedCharge> charges;
};

tl::unexpected<Error> wrong(const proto::MeterLine& line, const std::string& what) {
  return fail(ErrorCode::invalid_argument, fmt::format("line {}: {}", line.line, what));
}

Result<PostedCharge> priced(const State& state, const proto::MeterLine& line) {
  const auto* tenant = state.tenancy.tenant(line.tenant);
  if (tenant == nullptr) return wrong(line, fmt::format("there is no tenant {}", line.tenant));
  const auto& projects = tenant->effective.projects;
  const bool known = line.project.empty() || line.project == line.tenant ||
                     std::any_of(projects.begin(), projects.end(),
                                 [&](const tenancy::Project& p) { return p.name == line.project; });
  if (!known)
    return wrong(line, fmt::format("tenant {} has no project {}", line.tenant, line.project));
  const auto local = parse_local_time(line.date);
  if (!local) return wrong(line, local.error().message);
  const PriceTable& prices = state.ledger.prices;
  const TimeZone& zone = prices.zone_of(line.tenant);
  const Instant at = zone.instant_of(*local);
  const tenancy::PriceBook* book = prices.at(at);
  const auto price = book == nullptr ? std::map<std::string, Money>::const_iterator{}
                                     : book->meters.find(line.meter);
  if (book == nullptr || price == book->meters.end())
    return wrong(line, fmt::format("no price book has a price for meter {} on {}: it has none "
                                   "under `meters`",
                                   line.meter, line.date));
  if (line.amount < -kMostAmount || line.amount > kMostAmount)
    return wrong(line, "the amount is outside of -1000000000 to 1000000000");
  PostedCharge out;
  out.period = month_at(zone, at);
  out.week = week_at(zone, at);
  out.tenant = line.tenant;
  out.project = line.project;
  out.user = line.user;
  out.item = std::string(kMeters) + line.meter;
  out.amount = line.amount;
  // Rounded once, to the nearest millionth; halves are rounded away from zero.
  const __int128 exact = static_cast<__int128>(line.amount) * price->second.micros;
  const __int128 half = exact < 0 ? -kThousandthsUnit / 2 : kThousandthsUnit / 2;
  const __int128 cost = (exact + half) / kThousandthsUnit;
  if (cost > tenancy::kMostBudget.micros || cost < -tenancy::kMostBudget.micros)
    return wrong(line, "that would cost more than there is");
  out.cost = Money{static_cast<std::int64_t>(cost)};
  return out;
}

Result<Priced> priced(const Context& ctx, const Identity& who, const proto::ImportMeter& m) {
  if (m.name.empty() || m.name.size() > kMostName || m.name.starts_with(kMonthNames))
    return fail(ErrorCode::invalid_argument,
                fmt::format("\"{}\" cannot be the name of a batch: 1 to {} bytes that do not begin "
                            "with \"{}\" can",
                            m.name, kMostName, kMonthNames));
  if (m.lines.empty() || m.lines.size() > kMostLines)
    return fail(ErrorCode::invalid_argument,
                fmt::format("a batch has 1 to {} lines, not {}", kMostLines, m.lines.size()));
  Priced out;
  out.batch.name = m.name;
  out.batch.digest = m.digest;
  out.batch.by = who.owner.user;
  out.batch.at = ctx.now;
  out.batch.lines = m.lines.size();
  for (const proto::MeterLine& line : m.lines) {
    ASSIGN(charge, priced(ctx.state, line));
    out.batch.cost += charge->cost;
    if (out.batch.cost > tenancy::kMostBudget || out.batch.cost < Money{} - tenancy::kMostBudget)
      return wrong(line, "up to here the batch would cost more than there is");
    out.charges.push_back(std::move(*charge));
  }
  return out;
}

}  // namespace

void close_months(Context& ctx) {
  ctx.rt.money->month_due.reset();
  const PriceTable& prices = ctx.state.ledger.prices;
  if (std::none_of(prices.books.begin(), prices.books.end(),
                   [](const auto& b) { return !b.book.overhead.empty(); }))
    return;
  const Month present = month_of(prices.zone, ctx.now);
  std::optional<Month> last = last_posted(ctx.state);
  if (!last) {  // start with this month
    event::ChargesPosted e;
    e.batch.name = std::string(kMonthNames) + present.before().name();
    e.batch.at = ctx.now;
    ctx.record(e);
    last = present.before();
  }
  const auto due = [&](Month month) { return month.next().begin(prices.zone) + kMonthMargin; };
  for (; due(last->next()) <= ctx.now; last = last->next()) close_month(ctx, last->next());
  ctx.rt.money->month_due = due(last->next());
}

void apply_event(MutableState& state, Instant, const event::ChargesPosted& e) {
  const auto [it, fresh] = state.ledger.posted.emplace(e.batch.name, e.batch);
  GANTRY_ASSERT(fresh, "a batch is posted once");
  state.unfolded.posted.push_back(it->first);
  for (const PostedCharge& charge : e.charges) post_charge(state, charge);
}

static void handle(Context& ctx, const ClientRequest& from, proto::ImportMeter&& m) {
  auto batch = priced(ctx, from.who, m);
  if (!batch) return refuse(ctx, from, batch.error());
  proto::MeterReply reply;
  reply.currency = ctx.state.ledger.prices.currency;
  const auto known = ctx.state.ledger.posted.find(m.name);
  reply.again = known != ctx.state.ledger.posted.end();
  if (reply.again && known->second.digest != m.digest)
    return refuse(ctx, from,
                  {ErrorCode::wrong_state,
                   fmt::format("batch {} was imported at {} with other lines: corrections are a "
                               "batch of their own, with amounts that may be negative",
                               m.name, format_time(known->second.at))});
  reply.batches.push_back(reply.again ? known->second : batch->batch);
  if (!reply.again && !m.check)
    ctx.record(event::ChargesPosted{std::move(batch->batch), std::move(batch->charges)});
  ctx.reply(from, std::move(reply));
}

static void handle(Context& ctx, const ClientRequest& from, proto::ListMeters&&) {
  proto::MeterReply reply;
  reply.currency = ctx.state.ledger.prices.currency;
  for (const auto& [name, batch] : ctx.state.ledger.posted)
    if (!name.starts_with(kMonthNames) || batch.lines > 0) reply.batches.push_back(batch);
  std::sort(reply.batches.begin(), reply.batches.end(), [](const auto& a, const auto& b) {
    return std::tie(b.at, a.name) < std::tie(a.at, b.name);
  });
  ctx.reply(from, std::move(reply));
}

const Subject kPostedMessages{.name = "posted",
                              .handlers = kHandlers<proto::ImportMeter, proto::ListMeters>};

}  // namespace gantry::core
