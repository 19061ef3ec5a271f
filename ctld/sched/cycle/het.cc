// See het.h.
#include "ctld/sched/cycle/het.h"

#include <algorithm>
#include <numeric>

#include <fmt/core.h>

#include "common/assert.h"
#include "ctld/sched/place/place.h"

namespace gantry::sched {
namespace {

constexpr std::size_t kMostOrders = 8;     // in which members are tried
constexpr std::uint32_t kMostRounds = 64;  // of a search for one start for all

}  // namespace

HetGroup::HetGroup(Cycle& cycle, const Turn& turn) : cycle_(cycle) {
  const HetPart& het = *cycle.cls(turn).key.het;
  if (het.offset != 0) return;
  Replica& r = cycle.r_;
  for (std::uint32_t i = 0; i < het.size; ++i) {
    const auto slot = r.queue_.find(het.member(i));
    if (!slot) {
      members_.clear();
      return;
    }
    JobClass& c = r.queue_.job_class(r.queue_.line(r.queue_[*slot].line).class_index);
    r.eligible_.refresh(c, r.grid_);
    members_.push_back({*slot, &c, {}, 0, {}});
  }
  order_.resize(members_.size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::vector<std::uint32_t> choice;
  for (const Member& m : members_)
    choice.push_back(m.cls->required.empty() ? r.eligible_.nodes_of(*m.cls).count() : 0);
  std::stable_sort(order_.begin(), order_.end(),
                   [&](std::size_t a, std::size_t b) { return choice[a] < choice[b]; });
}

JobId HetGroup::job(const Member& m) const {
  return cycle_.r_.queue_[m.slot].job;
}

bool HetGroup::may_run() const {
  return !members_.empty() && std::all_of(members_.begin(), members_.end(), [](const Member& m) {
    return m.cls->standing.verdict.reason == Reason::none;
  });
}

// ---- one trial: members find their places beside those before them

void HetGroup::begin_trial() {
  for (const auto& [tenant, need] : charged_) cycle_.r_.charges_.tree().remove(tenant, need);
  charged_.clear();
  tenants_.clear();
  used_ = Bits{};
  used_.resize(cycle_.r_.grid_.size());
}

void HetGroup::take(Member& m, Slot found, std::uint32_t flavor) {
  for (const Share& s : found.shares) used_.set(s.node);
  const std::uint32_t tenant = cycle_.tenant_of(*m.cls);
  if (tenant != kNoIndex)
    for (const QuotaNeed& need : cycle_.needs_of(*m.cls, found.shares)) {
      cycle_.r_.charges_.tree().add(tenant, need);
      charged_.emplace_back(tenant, need);
    }
  tenants_.push_back(tenant);
  m.found = std::move(found);
  m.flavor = flavor;
}

bool HetGroup::has_job_left(const Member& m) const {
  const std::uint32_t tenant = cycle_.tenant_of(*m.cls);
  if (tenant == kNoIndex) return true;
  const auto& most = cycle_.r_.tenancy_->nodes[tenant].max_running;
  const auto beside = std::count(tenants_.begin(), tenants_.end(), tenant);
  return !most || cycle_.jobs_of_tenant(tenant) + beside < *most;
}

// A node that it needs by name is another's: those a search takes as given.
bool HetGroup::is_shut_out(const Member& m) const {
  return std::any_of(m.cls->required.begin(), m.cls->required.end(),
                     [this](std::uint32_t n) { return used_.test(n); });
}

Bits HetGroup::nodes_for(const Member& m, const NodeChoice& choice) const {
  Bits nodes = cycle_.nodes_for(*m.cls, choice);
  for (std::size_t w = 0; w < nodes.words(); ++w) nodes.word_at(w) &= ~used_.word(w);
  return nodes;
}

std::optional<Neighbours> HetGroup::neighbours_of(const Member& m) const {
  const Queue& queue = cycle_.r_.queue_;
  return cycle_.neighbours_of(*m.cls, queue.line(queue[m.slot].line).share);
}

std::optional<Blocked> HetGroup::fit_now(Member& m) {
  JobClass& c = *m.cls;
  Replica& r = cycle_.r_;
  const std::uint32_t tenant = cycle_.tenant_of(c);
  if (!r.timeline_.speak_for(c.key.reservation)) return Blocked{Blocked::By::reservation, {}};
  if (!has_job_left(m)) return Blocked{Blocked::By::tenant_jobs, {}};
  if (is_shut_out(m)) return Blocked{};
  std::optional<Blocked> first;
  // Flavors in which it borrows nothing come first.
  for (const bool borrowing : {false, true})
    for (const NodeChoice& choice : r.eligible_.flavors_of(c)) {
      if (tenant == kNoIndex && borrowing) continue;
      QuotaFit fit;
      if (tenant != kNoIndex) {
        fit = r.charges_.tree().fit(tenant, {choice.flavor, c.least});
        if (fit.borrows != borrowing) continue;
      }
      if (tenant != kNoIndex && !fit.fits) {
        if (!first) first = Blocked{Blocked::By::quota, fit};
        continue;
      }
      ++cycle_.plan_.stats.attempts;
      const auto neighbours = neighbours_of(m);
      auto place = find_place(r.grid_, r.timeline_, nodes_for(m, choice), c, nullptr,
                              neighbours ? &*neighbours : nullptr, cycle_.scores());
      if (place && tenant != kNoIndex) {
        fit = cycle_.fit(tenant, cycle_.needs_of(c, *place));
        if (!fit.fits) {
          first = Blocked{Blocked::By::quota, fit};
          continue;
        }
      }
      if (!place) {
        if (!first || first->by == Blocked::By::quota) first = Blocked{};
        continue;
      }
      take(m, {cycle_.now_, std::move(*place), {}}, choice.flavor);
      return std::nullopt;
    }
  return first ? first : Blocked{};
}

// The order-th of the orders: the sorted one with another member in front.
std::optional<Blocked> HetGroup::try_now(std::size_t order) {
  begin_trial();
  std::vector<std::size_t> turns = order_;
  std::rotate(turns.begin(), turns.begin() + static_cast<std::ptrdiff_t>(order),
              turns.begin() + static_cast<std::ptrdiff_t>(order) + 1);
  for (const std::size_t i : turns)
    if (auto blocked = fit_now(members_[i])) {
      blocked->component = static_cast<std::uint32_t>(i);
      return blocked;
    }
  return std::nullopt;
}

bool HetGroup::place_now(Turn& turn) {
  if (may_run()) {
    cycle_.look_from(cycle_.place(turn));
    lift_promises();
    std::optional<Blocked> blocked = try_now(0);
    for (std::size_t i = 1; blocked && i < std::min(order_.size(), kMostOrders); ++i)
      if (!try_now(i)) blocked.reset();
    if (!blocked) {
      begin_trial();  // what it took is charged by the starts
      start(turn);
      return true;
    }
    begin_trial();
    put_back_promises();
    cycle_.blocked_.push_back(*blocked);
    turn.blocked = static_cast<std::uint32_t>(cycle_.blocked_.size());
    cycle_.partition(turn.partition).blocked = true;
    ++cycle_.behind_;
  }
  turn.head = turn.at;
  turn.head_job = turn.first;
  return false;
}

void HetGroup::start(Turn& turn) {
  std::vector<Share> everywhere;
  for (const Member& m : members_)
    everywhere.insert(everywhere.end(), m.found.shares.begin(), m.found.shares.end());
  for (const Member& m : members_) {
    if (!m.promise) continue;
    (void)cycle_.r_.timeline_.speak_for(m.cls->key.reservation);
    cycle_.hold_over(*m.cls, *m.promise, everywhere);
  }
  for (const Member& m : members_) {
    cycle_.start(*m.cls, m.slot, m.found.shares);
    cycle_.partition(m.cls->key.partition.value()).started.push_back(m.slot);
    if (&m == &members_.front()) continue;
    ++cycle_.started_ahead_[job(m)];  // its own turn finds it dealt with
    cycle_.order_->usage_grew();
  }
  for (const Member& m : members_)
    if (m.promise) cycle_.wake_behind(*m.promise, everywhere);
  cycle_.advance(turn);
  cycle_.order_->started(turn);
}

// ---- ahead

// The earliest start from `from` on, beside those before it.
bool HetGroup::fit_ahead(Member& m, Instant from, Instant before) {
  JobClass& c = *m.cls;
  Replica& r = cycle_.r_;
  if (is_shut_out(m) || !r.timeline_.speak_for(c.key.reservation)) return false;
  const std::uint32_t tenant = cycle_.tenant_of(c);
  std::optional<std::pair<Slot, std::uint32_t>> best;
  for (const NodeChoice& choice : r.eligible_.flavors_of(c)) {
    Instant ready = from;
    if (tenant != kNoIndex) {
      const auto quota = cycle_.quota_ready(tenant, {choice.flavor, c.least});
      if (!quota) continue;
      ready = std::max(ready, *quota);
    }
    std::uint64_t steps = 0;
    auto slot = r.timeline_.earliest(c, nodes_for(m, choice), ready, steps,
                                     best ? best->first.start : before);
    cycle_.plan_.stats.attempts += 1 + steps / 64;
    cycle_.plan_.stats.steps += steps;
    if (slot && (!best || slot->start < best->first.start)) best.emplace(*slot, choice.flavor);
  }
  if (!best) return false;
  take(m, std::move(best->first), best->second);
  return true;
}

// One start for all: from the latest of the earliest starts again, until nobody's is later.
bool HetGroup::try_ahead(std::size_t order, Instant before) {
  std::vector<std::size_t> turns = order_;
  std::rotate(turns.begin(), turns.begin() + static_cast<std::ptrdiff_t>(order),
              turns.begin() + static_cast<std::ptrdiff_t>(order) + 1);
  Instant at = cycle_.now_;
  for (std::uint32_t round = 0; round < kMostRounds; ++round) {
    begin_trial();
    const Instant from = at;
    for (const std::size_t i : turns) {
      if (!fit_ahead(members_[i], from, before)) return false;
      at = members_[i].found.start;
      if (at > from) break;
    }
    if (at == from) return true;
  }
  return false;
}

bool HetGroup::reserve_ahead(Turn& turn) {
  if (!may_run()) return false;
  const bool kept = all_promised();
  if (!kept) drop_promises();
  if (!kept && (!cycle_.everything_ || !cycle_.may_reserve(turn))) return false;
  Instant before = Timeline::kNever;
  bool again = false;
  if (kept) {
    const Promise& promise = cycle_.promises_.at(turn.first.job)[0];
    before = promise.start;
    again = cycle_.everything_ && cycle_.now_ - promise.looked >= kReplanPeriod &&
            cycle_.plan_.stats.steps < cycle_.policy_.replan_steps &&
            cycle_.replans_++ < cycle_.policy_.replans;
  }
  if (!kept || again) {
    lift_promises();
    bool found = false;
    for (std::size_t i = 0; !found && i < std::min(order_.size(), kMostOrders); ++i)
      found = try_ahead(i, before);
    begin_trial();
    if (found)
      promise_found(turn);
    else if (kept)
      put_back_promises();
    else
      return false;
    for (const Member& m : members_) cycle_.promises_.at(job(m))[0].looked = cycle_.now_;
  }
  for (const Member& m : members_) {
    Promise& promise = cycle_.promises_.at(job(m))[0];
    if (&m == &members_.front() || std::exchange(promise.told, true)) continue;
    Expected expected{promise.job, promise.start, {}};
    for (const Share& s : promise.shares) expected.nodes.push_back(NodeId{s.node});
    cycle_.plan_.expected.push_back(std::move(expected));
  }
  cycle_.tell(turn, cycle_.promises_.at(turn.first.job)[0]);
  return true;
}

// ---- promises

bool HetGroup::all_promised() const {
  return std::all_of(members_.begin(), members_.end(), [this](const Member& m) {
    const auto at = cycle_.promises_.find(job(m));
    return at != cycle_.promises_.end() && !at->second.empty();
  });
}

void HetGroup::lift_promises() {
  for (Member& m : members_) {
    const auto at = cycle_.promises_.find(job(m));
    if (at == cycle_.promises_.end()) continue;
    if (!at->second.empty()) {
      m.promise = std::move(at->second[0]);
      cycle_.lift(*m.promise);
    }
    cycle_.promises_.erase(at);
  }
}

void HetGroup::put_back_promises() {
  for (Member& m : members_) {
    if (!m.promise) continue;
    const Promise& p = *m.promise;
    (void)cycle_.r_.timeline_.speak_for(m.cls->key.reservation);
    GANTRY_ASSERT(cycle_.r_.timeline_.keep(*m.cls, p.job, p.start, p.shares),
                  "a promise has no room any more");
    cycle_.promises_[p.job].push_back(std::move(*m.promise));
    m.promise.reset();
  }
}

// Those of some members are worth nothing without the others.
void HetGroup::drop_promises() {
  lift_promises();
  for (Member& m : members_) {
    if (!m.promise) continue;
    cycle_.loosened(*m.promise);
    --cycle_.partition(m.promise->partition.value()).reservations;
    --cycle_.reservations_;
    m.promise.reset();
  }
}

void HetGroup::promise_found(const Turn& turn) {
  for (Member& m : members_) {
    (void)cycle_.r_.timeline_.speak_for(m.cls->key.reservation);
    cycle_.r_.timeline_.reserve(*m.cls, m.found, job(m));
    const bool fresh = !m.promise;
    if (!fresh) cycle_.loosened(*m.promise);
    Promise promise = fresh ? Promise{} : std::move(*m.promise);
    m.promise.reset();
    promise.job = job(m);
    promise.start = m.found.start;
    promise.shares = m.found.shares;
    promise.flavor = m.flavor;
    promise.told = false;
    if (fresh) {
      cycle_.remember(turn, std::move(promise));
    } else {
      cycle_.promises_[promise.job].push_back(std::move(promise));
    }
  }
}

// ---- why it waits

Verdict HetGroup::explain(const Turn& turn) {
  if (members_.empty()) return cycle_.explain_waiting(turn, turn.head_job);
  for (const Member& m : members_)
    if (m.cls->standing.verdict.reason != Reason::none) return m.cls->standing.verdict;
  lift_promises();
  auto blocked = try_now(0);
  std::uint32_t room = 0;
  const Member* m = blocked ? &members_[blocked->component] : nullptr;
  if (blocked && blocked->by == Blocked::By::room)
    for (const NodeChoice& choice : cycle_.r_.eligible_.flavors_of(*m->cls)) {
      const Timeline& timeline = cycle_.r_.timeline_;
      const Grid& grid = cycle_.r_.grid_;
      const Bits nodes = nodes_for(*m, choice);
      for (std::size_t w = 0; w < nodes.words(); ++w)
        any_in_word(nodes.word(w), w, [&](std::uint32_t n) {
          room += grid.available(n) && timeline.fits(n, m->cls->demand, cycle_.now_,
                                                     cycle_.end_of(*m->cls), grid.free(n)) > 0
                      ? 1
                      : 0;
          return false;
        });
    }
  begin_trial();
  put_back_promises();
  if (blocked && blocked->by == Blocked::By::reservation)
    return {Reason::reservation, 0, 0, m->cls->key.reservation};
  if (blocked && blocked->by == Blocked::By::tenant_jobs) {
    const std::uint32_t tenant = cycle_.tenant_of(*m->cls);
    return {Reason::tenant_jobs, cycle_.r_.charges_.running(tenant),
            *cycle_.r_.tenancy_->nodes[tenant].max_running, ""};
  }
  if (blocked && blocked->by == Blocked::By::quota) return cycle_.explain_quota(blocked->fit);
  if (!blocked || (!turn.reserved && !cycle_.may_reserve(turn)))
    return cycle_.explain_waiting(turn, turn.head_job);
  const HetPart& het = *m->cls->key.het;
  return {Reason::resources, room, m->cls->demand.min_nodes,
          fmt::format("{}+{}", het.leader.value(), het.offset)};
}

}  // namespace gantry::sched
