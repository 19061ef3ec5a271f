// See takings.h.
#include "tests/sim/check/takings.h"

#include <algorithm>

#include <fmt/core.h>

#include "common/time/time_zone.h"
#include "ctld/core/event/events_job.h"
#include "ctld/core/event/events_tenancy.h"
#include "ctld/core/money/ledger.h"
#include "ctld/sched/change.h"
#include "ctld/sched/tenant/amount.h"
#include "tests/sim/check/book.h"

namespace gantry::sim {
namespace {

namespace event = core::event;

constexpr std::int64_t kHourUs = kMicrosecondsPerHour;
constexpr std::array<const char*, 6> kNames{"cpu", "memory", "scratch", "gpu", "io", "net"};

std::size_t kind_of(const std::string& item) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (item == kNames[i]) return i;
  return 3;
}

std::int64_t whole_millions(std::int64_t rate) {
  return rate / 1'000'000 + (rate % 1'000'000 != 0 ? 1 : 0);
}

std::int64_t whole_mebibytes(std::int64_t bytes) {
  return (bytes >> 20) + (bytes % (1 << 20) != 0 ? 1 : 0);
}

std::array<std::int64_t, 6> capacity_of(const NodeConfig& node) {
  return {std::int64_t{node.cpus} * 1000, whole_mebibytes(node.memory),
          whole_mebibytes(node.scratch), std::int64_t{node.gpus} * 1000};
}

// In these histories special hours begin and end at full hours, and are the same every day.
std::int64_t factor_of_hour(const tenancy::PriceBook* book, std::int64_t local) {
  std::int64_t out = -1;
  if (book == nullptr) return 1000;
  const std::int64_t minute = ((local % 86'400 + 86'400) % 86'400) / 60;
  for (const tenancy::PriceHours& hours : book->hours) {
    const bool in = hours.from < hours.until ? minute >= hours.from && minute < hours.until
                                             : minute >= hours.from || minute < hours.until;
    if (in && (out < 0 || hours.factor < out)) out = hours.factor;
  }
  return out < 0 ? 1000 : out;
}

}  // namespace

void Takings::take(Instant at, core::EventRef event) {
  advance_time(at);
  if (const auto* e = event.get_if<event::NodeDeclared>()) declared(*e);
  if (const auto* e = event.get_if<event::NodeRegistered>()) found_[e->node] = e->facts.gpus;
  if (const auto* e = event.get_if<event::GpuDrained>()) drained_.emplace(e->node, e->uuid);
  if (const auto* e = event.get_if<event::GpuResumed>()) drained_.erase({e->node, e->uuid});
  if (const auto* e = event.get_if<event::PartitionDeclared>())
    payers_[e->partition] = payer_of(e->name);
  if (const auto* e = event.get_if<event::JobSubmitted>())
    tenants_[e->job] = payers_.at(e->partition);
  if (const auto* e = event.get_if<event::TaskSplit>()) tenants_[e->job] = tenants_.at(e->array);
  // A change of the paying tenant or a checkpoint records what was held until then.
  if (const auto* e = event.get_if<event::JobUpdated>()) note(e->job, at);
  if (const auto* e = event.get_if<event::JobCheckpointed>())
    note(e->job, std::min(at, e->saved.value_or(at)));
  if (const auto* e = event.get_if<event::JobUpdated>())
    if (e->partition) tenants_[e->job] = payers_.at(*e->partition);
  if (const auto* e = event.get_if<event::JobPlaced>()) placed(at, *e);
  if (const auto* e = event.get_if<event::NodeExited>()) exited(at, *e);
  const auto* applied = event.get_if<event::TenancyApplied>();
  if (applied == nullptr) return;
  if (std::any_of(applied->changes.begin(), applied->changes.end(), [](const auto& change) {
        return change.kind == tenancy::PriceBook::kKind || change.kind == tenancy::Budget::kKind;
      }))
    for (auto& [id, attempt] : attempts_) reckon(attempt, at);
  for (const core::DocumentChange& change : applied->changes) {
    const core::DocumentKey key{change.kind, change.name};
    if (change.after)
      documents_.insert_or_assign(key, *change.after);
    else
      documents_.erase(key);
  }
  prices_ = core::compile_prices(documents_);
}

void Takings::declared(const event::NodeDeclared& e) {
  const auto it = std::find_if(config_.nodes.begin(), config_.nodes.end(),
                               [&](const NodeConfig& c) { return c.name == e.name; });
  nodes_.push_back(it == config_.nodes.end() ? nullptr : &*it);
  if (nodes_.back() == nullptr) return;
  const auto own = capacity_of(*nodes_.back());
  for (std::size_t k = 0; k < kKinds; ++k) capacity_[k] += own[k];
}

void Takings::advance_time(Instant to) {
  if (now_ == Instant{}) now_ = to;
  if (to < now_) broken("time runs backwards in the journal");
  const std::int64_t length = (to - now_).us;
  for (std::size_t k = 0; k < kKinds; ++k) {
    whole_[k] += static_cast<Wide>(capacity_[k]) * length;
    held_[k] += static_cast<Wide>(taken_[k]) * length;
    idle_[k] += static_cast<Wide>(capacity_[k] - taken_[k]) * length;
  }
  now_ = to;
}

// Returns the GPUs of an exclusive node that are charged: those that are in service when the job
// begins. A GPU that fails later ends the job.
std::int64_t Takings::sound_gpus(NodeId node) const {
  const auto found = found_.find(node);
  const std::int64_t declared = nodes_.at(node.value())->gpus;
  if (found == found_.end() || found->second.gpus.empty()) return declared;
  const auto sound = std::count_if(
      found->second.gpus.begin(), found->second.gpus.end(), [&](const GpuDevice& gpu) {
        return !drained_.contains({node, gpu.uuid}) &&
               std::none_of(gpu.faults.begin(), gpu.faults.end(), [](const GpuFault& fault) {
                 return fault.domain != FaultDomain::none;
               });
      });
  return std::min<std::int64_t>(declared, sound);
}

// Checks that the amounts of the event are those of the grant, or of the whole node if it is
// exclusive.
void Takings::check_amounts(const event::JobPlaced& e, std::size_t grant) const {
  const sched::NodeGrant& g = e.grants[grant];
  const NodeConfig* node = nodes_.at(g.node.value());
  const Resources amount = sched::amount_of(g);
  std::array<std::int64_t, kKinds> should{amount[Resource::cpu],
                                          whole_mebibytes(amount[Resource::memory]),
                                          whole_mebibytes(amount[Resource::scratch]),
                                          amount[Resource::gpu],
                                          whole_millions(amount[Resource::io]),
                                          whole_millions(amount[Resource::net])};
  if (e.exclusive) {
    const std::int64_t io = should[4], net = should[5];  // a whole node has no more of them
    should = capacity_of(*node);
    should[3] = sound_gpus(g.node) * 1000;
    should[4] = io;
    should[5] = net;
  }
  std::array<std::int64_t, kKinds> is{};
  for (const core::HeldPart& part : e.held.at(grant))
    is[kind_of(e.items.at(part.line).item)] += part.amount;
  for (std::size_t k = 0; k < kKinds; ++k)
    if (is[k] != should[k])
      broken(fmt::format("job {} is billed {} of {} on {}, and holds {}", e.job.value(), is[k],
                         kNames[k], node->name, should[k]));
}

void Takings::placed(Instant at, const event::JobPlaced& e) {
  if (attempts_.contains(e.job)) broken("a job that holds something is placed");
  if (e.held.size() != e.grants.size()) broken("a start without its bill");
  Attempt& attempt = attempts_[e.job];
  attempt.tenant = tenants_.at(e.job);
  attempt.plan = e.plan;
  attempt.since = at;
  for (const core::BillItem& item : e.items) attempt.lines.push_back({item, 0, 0});
  for (std::size_t i = 0; i < e.grants.size(); ++i) {
    check_amounts(e, i);
    attempt.held[e.grants[i].node] = e.held[i];
    for (const core::HeldPart& part : e.held[i]) {
      attempt.lines.at(part.line).amount += part.amount;
      taken_[kind_of(e.items[part.line].item)] += part.amount;
    }
  }
}

void Takings::exited(Instant at, const event::NodeExited& e) {
  const auto it = attempts_.find(e.job);
  if (it == attempts_.end()) broken("a node lets go of what nobody holds");
  Attempt& attempt = it->second;
  // The job is charged until the node released it, of which the report may be late; what was
  // computed before stays.
  reckon(attempt, e.ended.value_or(at));
  const std::int64_t late = (at - attempt.since).us;
  for (const core::HeldPart& part : attempt.held.at(e.node)) {
    const std::size_t kind = kind_of(attempt.lines.at(part.line).what.item);
    attempt.lines[part.line].amount -= part.amount;
    taken_[kind] -= part.amount;
    held_[kind] -= static_cast<Wide>(part.amount) * late;
    idle_[kind] += static_cast<Wide>(part.amount) * late;
  }
  attempt.held.erase(e.node);
  if (!attempt.held.empty()) return;
  for (const Line& line : attempt.lines) over_ += rounded(line);
  attempts_.erase(it);
}

void Takings::note(JobId job, Instant until) {
  if (const auto it = attempts_.find(job); it != attempts_.end()) reckon(it->second, until);
}

void Takings::reckon(Attempt& attempt, Instant to) const {
  const TimeZone& zone = prices_.zone_of(attempt.tenant);
  while (attempt.since < to) {
    const Instant hour{(attempt.since.us / kHourUs + 1) * kHourUs};
    const Instant until = std::min(hour, to);
    const tenancy::PriceBook* book = prices_.at(attempt.since);
    const Wide factors = static_cast<Wide>(core::plan_factor(book, attempt.plan)) *
                         factor_of_hour(book, zone.local_of(attempt.since));
    for (Line& line : attempt.lines)
      line.cost += static_cast<Wide>(line.amount) * (until - attempt.since).us * factors *
                   core::price_of(book, line.what.item, line.what.unit).micros;
    attempt.since = until;
  }
}

Money Takings::rounded(const Line& line) {
  const Wide divisor = static_cast<Wide>(line.what.unit) * kHourUs * 1'000'000;
  return {static_cast<std::int64_t>((2 * line.cost + divisor) / (2 * divisor))};
}

Money Takings::sum() const {
  Money out = over_;
  for (const auto& [id, attempt] : attempts_) {
    Attempt copy = attempt;
    reckon(copy, now_);
    for (const Line& line : copy.lines) out += rounded(line);
  }
  return out;
}

void Takings::compare(const core::State& state) const {
  std::array<Wide, kKinds> charged{}, credited{};
  Money cost;
  Money credit;
  const auto exact = [](const gantry::Held& held, std::int64_t unit) {
    return static_cast<Wide>(held.hours) * unit * kHourUs + held.rest;
  };
  for (const auto& [key, sum] : state.ledger.sums) {
    const core::LedgerParts parts = core::ledger_parts(key);
    if (parts.period.find('W') != std::string::npos) continue;
    const std::int64_t unit = core::held_unit(parts.item);
    credited[kind_of(parts.item)] += exact(sum.credited, unit);
    charged[kind_of(parts.item)] += exact(sum.held, unit) - exact(sum.credited, unit);
    cost += sum.cost;
    credit += sum.credit;
  }
  core::accrue(state, now_, [&](const core::LedgerParts& parts, const core::LedgerSum& more) {
    if (parts.period.find('W') != std::string::npos) return;
    charged[kind_of(parts.item)] += exact(more.held, core::held_unit(parts.item));
    cost += more.cost;
  });
  for (std::size_t k = 0; k < kKinds; ++k)
    if (charged[k] + credited[k] + idle_[k] != whole_[k])
      broken(fmt::format("{}: charged, credited and idle are not capacity x time", kNames[k]));
  if (const Money should = sum(); cost != should)
    broken(fmt::format("the ledger has {}, what was held comes to {}", format_money(cost, 6),
                       format_money(should, 6)));
  if (credit > cost || credit < Money{}) broken("more is credited than was charged");
}

}  // namespace gantry::sim
