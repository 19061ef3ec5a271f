#include "ctld/core/notify/usage_events.h"

#include <fmt/core.h>

#include "common/time/time_zone.h"
#include "ctld/core/apply.h"
#include "ctld/core/event/events_attempt.h"
#include "ctld/core/money/ledger.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

std::string utc(Instant t) {
  const std::int64_t seconds = t.us / 1'000'000;
  const CivilDay day = civil_of(seconds / 86'400);
  const std::int64_t s = seconds % 86'400;
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", day.year, day.month, day.day, s / 3600,
                     s / 60 % 60, s % 60);
}

std::string amount_text(const std::string& item, std::int64_t amount) {
  const std::int64_t unit = held_unit(item);
  return fmt::format("{}.{:03}", amount / unit, amount % unit * 1000 / unit);
}

UsageEvent head(const State& state, const Job& job, EventSeq seq, Instant at,
                const std::string& cluster, std::string kind) {
  UsageEvent out;
  out.id = fmt::format("{}-{}", cluster, seq.value());
  out.seq = seq.value();
  out.kind = std::move(kind);
  out.at = utc(at);
  out.tenant = state.partition(class_of(state, job).partition).payer();
  out.project = state.names.text(job.account);
  if (out.project.empty()) out.project = out.tenant;
  out.user = state.names.text(job.user);
  out.job = display_id(state, job);
  out.attempt = job.attempt.value();
  out.job_type = job.kind == JobKind::allocation ? "interactive"
                 : job.is_element()              ? "array"
                                                 : "batch";
  out.plan = job.active->bill.plan;
  out.currency = state.ledger.prices.currency;
  return out;
}

UsageEvent start_of(const State& state, const Job& job, EventSeq seq, Instant at,
                    const std::string& cluster) {
  UsageEvent out = head(state, job, seq, at, cluster, "start");
  const Bill& bill = job.active->bill;
  for (const BillLine& line : bill.lines)
    out.things.push_back(
        {line.what.item, line.what.pool, amount_text(line.what.item, line.amount), {}, {}});
  if (!out.currency.empty())
    out.rate = format_money(
        rate_at(state.ledger.prices, state.ledger.prices.zone_of(out.tenant), bill, at), 4);
  return out;
}

// Call it before the end is applied: the bill is complete, because nothing is held any more.
UsageEvent end_of(const State& state, const Job& job, EventSeq seq, Instant at,
                  const std::string& cluster, std::string_view outcome) {
  UsageEvent out = head(state, job, seq, at, cluster, "end");
  out.started = utc(job.active->placed);
  out.outcome = outcome;
  const bool priced = !out.currency.empty();
  for (const BillLine& line : job.active->bill.lines)
    out.things.push_back({line.what.item,
                          line.what.pool,
                          {},
                          format_hours(line.held, held_unit(line.what.item)),
                          priced ? format_money(line.booked()) : std::string()});
  if (priced) out.cost = format_money(job.active->bill.booked(), 4);
  return out;
}

}  // namespace

void apply_and_tell(MutableState& state, EventSeq seq, Instant at, EventRef event,
                    const std::string& cluster, std::vector<UsageEvent>& out) {
  const auto* ended = event.get_if<event::JobEnded>();
  const auto* again = event.get_if<event::JobRequeued>();
  const auto* placed = event.get_if<event::JobPlaced>();
  const JobId id = ended != nullptr ? ended->job : again != nullptr ? again->job : JobId{};
  Money credited;
  bool ends = false;
  if (id != JobId{}) {
    const Job& job = state.jobs.at(id);
    ends = job.active && !job.active->bill.settled && !job.active->bill.lines.empty();
    credited = job.credited;
    if (ends)
      out.push_back(end_of(state, job, seq, at, cluster,
                           ended != nullptr ? enum_name(ended->outcome) : "requeued"));
  }
  apply(state, at, event);
  if (ends && !out.back().currency.empty())
    out.back().credit = format_money(state.jobs.at(id).credited - credited, 4);
  if (placed != nullptr)
    out.push_back(start_of(state, state.jobs.at(placed->job), seq, at, cluster));
}

}  // namespace gantry::core
