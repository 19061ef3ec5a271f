#include "ctld/core/money/ledger.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/core.h>

#include "common/assert.h"
#include "common/proto/ledger.h"
#include "ctld/core/event/events_attempt.h"
#include "ctld/core/money/budgets.h"
#include "ctld/core/money/report_labels.h"
#include "ctld/core/resources/index.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

constexpr char kPart = '\x1f';         // separates the parts of a key; no name has it
constexpr std::size_t kMostPart = 64;  // bytes of most parts of a key; longer names are cut
constexpr std::size_t kLongPart = 80;
static_assert(9 + 5 * (kMostPart + 1) + 2 * (kLongPart + 1) <= store::kMaxKeyBytes);
// The part of the key for the plan also holds the labels, if there are any.
constexpr std::size_t kShortPlan = kMostPart - kLabelsWordBytes - 1;

std::string_view job_type_of(const Job& job) {
  if (job.kind == JobKind::allocation) return "interactive";
  return job.is_element() ? "array" : "batch";
}

// All parts of the job's keys except period, pool and item.
LedgerParts parts_of(const State& state, const Job& job) {
  LedgerParts out;
  out.tenant = state.partition(class_of(state, job).partition).payer();
  out.project = state.names.text(job.account);
  if (out.project.empty()) out.project = out.tenant;
  out.user = state.names.text(job.user);
  out.job_type = job_type_of(job);
  out.plan = job.active->bill.plan;
  out.labels = job.active->bill.labels;
  return out;
}

// Brings a bill up to `to`. For each piece of time, calls `post` with the growth of each line:
// held, cost, list.
template <class Post>
void advance(const PriceTable& prices, const TimeZone& zone, Bill& bill, Instant to, Post&& post) {
  while (bill.since < to) {
    const Piece piece = piece_at(prices, zone, bill.since, to);
    const Duration length = piece.until - piece.from;
    const std::int64_t factor = plan_factor(piece.book, bill.plan);
    for (BillLine& line : bill.lines) {
      if (line.amount == 0) continue;
      Held held;
      add_held(held, line.amount, length, held_unit(line.what.item));
      add_held(line.held, held, held_unit(line.what.item));
      const Money price = price_of(piece.book, line.what.item, line.what.unit);
      const Money cost = add_charge(line.cost, line.amount, line.what.unit, price, length, factor,
                                    piece.hour_factor);
      LedgerSum more;
      more.held = held;
      more.cost = cost;
      more.list = add_charge(line.list, line.amount, line.what.unit, price, length, kFactorUnit,
                             kFactorUnit);
      post(piece, line, more);
    }
    bill.since = piece.until;
  }
}

LedgerSum& sum_at(MutableState& state, const LedgerParts& parts) {
  std::string key = ledger_key(parts);
  const auto [it, fresh] = state.ledger.sums.try_emplace(key);
  LedgerSum& sum = it->second;
  if (fresh && !parts.labels.empty()) {
    sum.labels = parts.labels;
    state.ledger.labels[parts.tenant].insert(parts.labels);
  }
  if (!sum.fold_due) state.unfolded.sums.push_back(std::move(key));
  sum.fold_due = true;
  return sum;
}

LedgerSum& total_at(MutableState& state, const LedgerParts& parts) {
  return state.ledger.totals[{parts.tenant, parts.job_type, parts.item}];
}

// Adds to the sums of these periods and to the total.
void post_sums(MutableState& state, LedgerParts& parts, const std::array<std::string, 2>& periods,
               const LedgerSum& more) {
  const std::int64_t unit = held_unit(parts.item);
  for (const std::string& period : periods) {
    parts.period = period;
    add_sum(sum_at(state, parts), more, unit);
  }
  add_sum(total_at(state, parts), more, unit);
}

const TimeZone& zone_of(const State& state, const Job& job) {
  return state.ledger.prices.zone_of(state.partition(class_of(state, job).partition).payer());
}

}  // namespace

std::int64_t held_unit(std::string_view item) {
  return item == "memory" || item == "scratch" ? kMebibyteUnit : kThousandthsUnit;
}

std::string ledger_key(const LedgerParts& p) {
  std::string out;
  out += p.period.find('W') == std::string::npos ? 'M' : 'W';
  for (const std::string* part :
       {&p.period, &p.tenant, &p.project, &p.user, &p.job_type, &p.pool, &p.item, &p.plan}) {
    if (part != &p.period) out += kPart;
    const bool shared = part == &p.plan && !p.labels.empty();
    out += part->substr(0, part == &p.project || part == &p.item ? kLongPart
                           : shared                              ? kShortPlan
                                                                 : kMostPart);
  }
  if (!p.labels.empty()) out += kPart + labels_word(p.labels);
  return out;
}

LedgerParts ledger_parts(const std::string& key) {
  LedgerParts p;
  std::size_t at = 1;
  for (std::string* part :
       {&p.period, &p.tenant, &p.project, &p.user, &p.job_type, &p.pool, &p.item, &p.plan}) {
    const std::size_t end = std::min(key.find(kPart, at), key.size());
    *part = key.substr(std::min(at, key.size()), end - std::min(at, key.size()));
    at = end + 1;
  }
  return p;
}

void add_total(LedgerState& ledger, const std::string& key, const LedgerSum& sum) {
  const LedgerParts parts = ledger_parts(key);
  if (!sum.labels.empty()) ledger.labels[parts.tenant].insert(sum.labels);
  if (parts.period.find('W') != std::string::npos) return;  // the sums of months already count it
  add_sum(ledger.totals[{parts.tenant, parts.job_type, parts.item}], sum, held_unit(parts.item));
}

void add_sum(LedgerSum& sum, const LedgerSum& more, std::int64_t unit) {
  add_held(sum.held, more.held, unit);
  add_held(sum.credited, more.credited, unit);
  add_held(sum.wasted, more.wasted, unit);
  sum.cost += more.cost;
  sum.credit += more.credit;
  sum.list += more.list;
  sum.waste += more.waste;
  sum.runs += more.runs;
  sum.starts += more.starts;
  sum.waited = sum.waited + more.waited;
}

std::string plan_of(const State& state, const Job& job, Instant now) {
  const sched::ClassKey& key = class_of(state, job);
  const std::string& tenant = state.partition(key.partition).payer();
  const auto& classes = state.tenancy.class_names;
  const std::string cls =
      key.priority_class < classes.size() ? classes[key.priority_class] : std::string();
  const CompiledTenant* compiled = state.tenancy.tenant(tenant);
  std::string project = state.names.text(job.account);
  if (project.empty()) project = tenant;
  return plan_for(state.ledger.prices.at(now), cls, tenant, project,
                  compiled == nullptr ? std::string() : compiled->effective.tier,
                  key.shape.sandbox.value_or(Sandbox::standard));
}

namespace {

// A wait for the user's own dependency, date or hold, or after a failed start, is not counted as
// queue time.
bool is_queue(Reason reason) {
  return reason != Reason::dependency && reason != Reason::begin_time &&
         reason != Reason::held_user && reason != Reason::requeued;
}

bool counts_runs(const Bill& bill, const BillLine& line) {
  return line.what.item == "cpu" && &line.what == &bill.lines.front().what;
}

void post_start(MutableState& state, const Job& job, Instant at,
                const std::vector<WaitPart>& waits) {
  const Bill& bill = job.active->bill;
  if (bill.lines.empty() || !counts_runs(bill, bill.lines.front())) return;
  LedgerSum more;
  more.starts = 1;
  for (const WaitPart& part : waits)
    if (is_queue(part.reason)) more.waited = more.waited + part.length;
  LedgerParts parts = parts_of(state, job);
  parts.pool = bill.lines.front().what.pool;
  parts.item = "cpu";
  const TimeZone& zone = zone_of(state, job);
  post_sums(state, parts, {month_at(zone, at), week_at(zone, at)}, more);
}

}  // namespace

void open_bill(MutableState& state, const event::JobPlaced& e, Job& job, Instant at) {
  Active& active = *job.active;
  GANTRY_ASSERT(e.held.empty() || e.held.size() == active.nodes.size(), "what each node gives");
  active.bill.plan = e.plan;
  active.bill.labels = e.labels;
  active.bill.since = at;
  for (const BillItem& item : e.items) active.bill.lines.emplace_back().what = item;
  for (std::size_t i = 0; i < e.held.size(); ++i) {
    active.nodes[i].held = e.held[i];
    for (const HeldPart& part : e.held[i]) active.bill.lines.at(part.line).amount += part.amount;
  }
  post_start(state, job, at, e.waits);
}

void charge(MutableState& state, Job& job, Instant to) {
  if (!job.active || job.active->bill.settled || job.active->bill.lines.empty()) return;
  LedgerParts parts = parts_of(state, job);
  const BudgetList budgets = budgets_of(state, job);
  const Money set_aside = budgets.empty() ? Money{} : job.active->bill.reserved();
  advance(state.ledger.prices, zone_of(state, job), job.active->bill, to,
          [&](const Piece& piece, const BillLine& line, const LedgerSum& more) {
            post_spent(state, budgets, piece, more.cost);
            parts.pool = line.what.pool;
            parts.item = line.what.item;
            post_sums(state, parts, {piece.month, piece.week}, more);
          });
  if (!budgets.empty()) shift_reserved(state, budgets, job.active->bill.reserved() - set_aside);
}

void release_held(MutableState& state, Job& job, const NodeRun& run, Instant at) {
  charge(state, job, at);
  for (const HeldPart& part : run.held) {
    BillLine& line = job.active->bill.lines.at(part.line);
    GANTRY_ASSERT(line.amount >= part.amount, "a node gives back what it gave");
    line.amount -= part.amount;
  }
}

namespace {

void each_held(Job& job, int sign) {
  for (const NodeRun& run : job.active->nodes)
    if (run.state != RunState::released)
      for (const HeldPart& part : run.held)
        job.active->bill.lines.at(part.line).amount += sign * part.amount;
}

}  // namespace

void stop_charging(MutableState& state, Job& job, Instant at) {
  charge(state, job, at);
  each_held(job, -1);
}

void go_on_charging(MutableState& state, Job& job, Instant at) {
  charge(state, job, at);  // charges nothing for what follows: only brings the bill up to now
  each_held(job, 1);
}

void save_bill(MutableState& state, Job& job, Instant saved) {
  charge(state, job, saved);
  for (BillLine& line : job.active->bill.lines) {
    line.held_saved = line.held;
    line.cost_saved = line.booked();
  }
}

namespace {

tenancy::CreditPart credit_of(const tenancy::PriceBook* book, EndedBy why) {
  if (book == nullptr) return tenancy::CreditPart::none;
  switch (why) {
    case EndedBy::itself: return tenancy::CreditPart::none;
    case EndedBy::preemption: return book->preempted;
    case EndedBy::node_failure: return book->node_failure;
    case EndedBy::launch_failure: return book->launch_failure;
  }
  return tenancy::CreditPart::none;
}

constexpr std::int64_t kMillionths = 1'000'000;

// Counts what the driver reported; a GPU or slice without a report counts as used.
std::int64_t idle_gpu_millionths(const Usage& usage, std::string_view item) {
  std::string name(item.substr(item.find(':') + 1));  // "h100 1g.10gb", as in GpuUsage
  std::replace(name.begin(), name.end(), ':', ' ');
  std::int64_t devices = 0, idle = 0;
  for (const GpuUsage& gpu : usage.gpus) {
    if (gpu.name != name) continue;
    ++devices;
    if (gpu.busy_samples > 0) idle += 1000 - std::min<std::int64_t>(gpu.busy_permille, 1000);
  }
  return devices == 0 ? 0 : idle * (kMillionths / 1000) / devices;
}

// The part of one item on all its nodes that a job did not use, in millionths of what it held. For
// cores and memory, the kernel's counters decide. Scratch is not measured, and io and net are upper
// limits, so none of these counts as idle.
std::int64_t idle_millionths(const Active& active, std::string_view item) {
  if (item.starts_with("gpu:")) return idle_gpu_millionths(active.usage, item);
  if (item != "cpu" && item != "memory") return 0;
  const std::int64_t unit = held_unit(item);
  __int128 held = 0;        // amount x microseconds
  std::int64_t widest = 0;  // largest amount on one node
  const std::vector<BillLine>& lines = active.bill.lines;
  for (const BillLine& line : lines)
    if (line.what.item == item)
      held += static_cast<__int128>(line.held.hours) * unit * kMicrosecondsPerHour + line.held.rest;
  for (const NodeRun& run : active.nodes)
    for (const HeldPart& part : run.held)
      if (lines.at(part.line).what.item == item) widest = std::max(widest, part.amount);
  if (held <= 0 || widest <= 0) return 0;
  const Usage& usage = active.usage;
  // The peak is that of the node with the highest peak; the other nodes may have used less.
  const __int128 used =
      item == "cpu" ? static_cast<__int128>(usage.cpu_user_us + usage.cpu_system_us) * unit
                    : held * mebibytes_for(ByteCount{usage.memory_peak_bytes}).value() / widest;
  return kMillionths - static_cast<std::int64_t>(std::min(used, held) * kMillionths / held);
}

void note_waste(const BillLine& line, std::int64_t idle, LedgerSum& more) {
  if (idle == 0) return;
  const std::int64_t unit = held_unit(line.what.item);
  const auto part = [&](__int128 whole) {
    return static_cast<std::int64_t>(whole * idle / kMillionths);
  };
  const __int128 held =
      static_cast<__int128>(line.held.hours) * unit * kMicrosecondsPerHour + line.held.rest;
  const __int128 wasted = held * idle / kMillionths;
  more.wasted.hours = static_cast<std::int64_t>(wasted / (unit * kMicrosecondsPerHour));
  more.wasted.rest = static_cast<std::int64_t>(wasted % (unit * kMicrosecondsPerHour));
  more.waste = Money{part(line.booked().micros)};
}

}  // namespace

void settle_bill(MutableState& state, Job& job, Instant at, EndedBy why) {
  if (!job.active || job.active->bill.settled || job.active->bill.lines.empty()) return;
  Bill& bill = job.active->bill;
  charge(state, job, at);
  const BudgetList budgets = budgets_of(state, job);
  if (!budgets.empty()) shift_reserved(state, budgets, Money{} - bill.reserved());
  bill.settled = true;
  const tenancy::CreditPart part = credit_of(state.ledger.prices.at(at), why);
  const TimeZone& zone = zone_of(state, job);
  const std::array<std::string, 2> periods{month_at(zone, at), week_at(zone, at)};
  LedgerParts parts = parts_of(state, job);
  for (const BillLine& line : bill.lines) {
    GANTRY_ASSERT(line.amount == 0, "an attempt that is over holds nothing");
    job.billed += line.booked();
    LedgerSum more;
    if (part != tenancy::CreditPart::none) {
      const bool all = part == tenancy::CreditPart::all;
      more.credited = line.held;
      if (!all) take_held(more.credited, line.held_saved, held_unit(line.what.item));
      more.credit = all ? line.booked() : line.booked() - line.cost_saved;
      job.credited += more.credit;
      post_credit(state, budgets, at, more.credit);
    } else if (why == EndedBy::itself || why == EndedBy::preemption) {
      note_waste(line, idle_millionths(*job.active, line.what.item), more);
    }
    more.runs = counts_runs(bill, line) ? 1 : 0;
    if (more.runs == 0 && more.credited == Held{} && more.credit == Money{} &&
        more.wasted == Held{})
      continue;
    parts.pool = line.what.pool;
    parts.item = line.what.item;
    post_sums(state, parts, periods, more);
  }
}

void post_charge(MutableState& state, const proto::PostedCharge& charge) {
  LedgerParts parts;
  parts.tenant = charge.tenant;
  parts.project = charge.project.empty() ? charge.tenant : charge.project;
  parts.user = charge.user;
  parts.job_type = charge.item.substr(0, charge.item.find(':'));
  parts.item = charge.item;
  LedgerSum more;
  const bool correction = charge.amount < 0;
  Held held;
  add_held(held, correction ? -charge.amount : charge.amount, hours(1), kThousandthsUnit);
  if (correction)
    take_held(more.held, held, kThousandthsUnit);
  else
    more.held = held;
  more.cost = more.list = charge.cost;
  post_sums(state, parts, {charge.period, charge.week}, more);
}

void charge_all(MutableState& state, Instant at) {
  for (const JobId id : jobs_on_nodes(state)) {
    JobEdit job(state, id);
    charge(state, *job, at);
  }
}

Money cost_until(const PriceTable& prices, const TimeZone& zone, Bill bill, Instant to) {
  advance(prices, zone, bill, to, [](const auto&...) {});
  return bill.booked();
}

void accrue(const State& state, const Job& job, Instant now, const PieceCost& take) {
  if (!job.active || job.active->bill.settled || job.active->bill.lines.empty()) return;
  Bill bill = job.active->bill;
  advance(
      state.ledger.prices, zone_of(state, job), bill, now,
      [&](const Piece& piece, const BillLine&, const LedgerSum& more) { take(piece, more.cost); });
}

std::optional<JobCost> cost_of(const State& state, const Job& job, Instant now) {
  const PriceTable& prices = state.ledger.prices;
  if (prices.currency.empty() || job.attempt == Attempt{}) return std::nullopt;
  JobCost out{job.billed, job.credited, std::nullopt};
  if (!job.active || job.active->bill.settled || job.active->bill.lines.empty()) return out;
  Bill bill = job.active->bill;
  advance(prices, zone_of(state, job), bill, now, [](const auto&...) {});
  out.cost += bill.booked();
  out.rate = rate_at(prices, zone_of(state, job), bill, std::max(now, bill.since));
  return out;
}

Money rate_at(const PriceTable& prices, const TimeZone& zone, const Bill& bill, Instant at) {
  const Piece piece = piece_at(prices, zone, at, at + microseconds(1));
  Money rate;
  for (const BillLine& line : bill.lines) {
    Exact hour;
    rate += add_charge(hour, line.amount, line.what.unit,
                       price_of(piece.book, line.what.item, line.what.unit), hours(1),
                       plan_factor(piece.book, bill.plan), piece.hour_factor);
  }
  return rate;
}

std::vector<JobId> jobs_on_nodes(const State& state) {
  std::set<JobId> jobs;
  for (const Node& node : state.nodes) jobs.insert(node.jobs.begin(), node.jobs.end());
  return {jobs.begin(), jobs.end()};
}

void accrue(const State& state, Instant now, const Accrual& take) {
  for (const JobId id : jobs_on_nodes(state)) {
    const Job& job = state.jobs.at(id);
    if (!job.active || job.active->bill.settled || job.active->bill.lines.empty()) continue;
    LedgerParts parts = parts_of(state, job);
    Bill bill = job.active->bill;
    advance(state.ledger.prices, zone_of(state, job), bill, now,
            [&](const Piece& piece, const BillLine& line, const LedgerSum& more) {
              parts.pool = line.what.pool;
              parts.item = line.what.item;
              for (const std::string* period : {&piece.month, &piece.week}) {
                parts.period = *period;
                take(parts, more);
              }
            });
  }
}

}  // namespace gantry::core
