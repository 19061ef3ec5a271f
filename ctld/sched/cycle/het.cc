// The search for places of the components of a heterogeneous job; see het.h.
#include "ctld/sched/cycle/het.h"

#include <algorithm>
#include <numeric>

#include <fmt/core.h>

#include "common/assert.h"
#include "ctld/sched/place/place.h"

namespace gantry::sched {
namespace {

constexpr std::size_t kMostOrders = 8;     // orders in which components are tried
constexpr std::uint32_t kMostRounds = 64;  // rounds of a search for one start for all

}  // namespace

HetGroup::HetGroup(const HetSteps& steps, const LineTurn& turn) : d_(steps.draft), s_(steps) {
  const HetPart& het = *d_.cls(turn).key.het;
  if (het.offset != 0) return;
  View& v = d_.view;
  for (std::uint32_t i = 0; i < het.size; ++i) {
    const auto slot = v.queue.find(het.member(i));
    if (!slot) {
      members_.clear();
      return;
    }
    JobClass& c = v.queue.job_class(v.queue.line(v.queue[*slot].line).class_index);
    v.eligible.refresh(c, v.grid);
    members_.push_back({*slot, &c, {}, 0, {}});
  }
  order_.resize(members_.size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::vector<std::uint32_t> choice;
  for (const Member& m : members_)
    choice.push_back(m.cls->required.empty() ? v.eligible.nodes_of(*m.cls).count() : 0);
  std::stable_sort(order_.begin(), order_.end(),
                   [&](std::size_t a, std::size_t b) { return choice[a] < choice[b]; });
}

JobId HetGroup::job(const Member& m) const {
  return d_.view.queue[m.slot].job;
}

bool HetGroup::may_run() const {
  return !members_.empty() && std::all_of(members_.begin(), members_.end(), [](const Member& m) {
    return m.cls->standing.verdict.reason == Reason::none;
  });
}

// ---- one trial: members find their places beside those before them

void HetGroup::begin_trial() {
  for (const auto& [tenant, need] : charged_) d_.view.charges.tree().remove(tenant, need);
  charged_.clear();
  tenants_.clear();
  used_ = Bits{};
  used_.resize(d_.view.grid.size());
}

void HetGroup::take(Member& m, Slot found, std::uint32_t flavor) {
  for (const Share& s : found.shares) used_.set(s.node);
  const std::uint32_t tenant = s_.quota.tenant_of(*m.cls);
  if (tenant != kNoIndex)
    for (const QuotaNeed& need : s_.quota.needs_of(*m.cls, found.shares)) {
      d_.view.charges.tree().add(tenant, need);
      charged_.emplace_back(tenant, need);
    }
  tenants_.push_back(tenant);
  m.found = std::move(found);
  m.flavor = flavor;
}

bool HetGroup::has_job_left(const Member& m) const {
  const std::uint32_t tenant = s_.quota.tenant_of(*m.cls);
  return s_.quota.has_job_left(tenant, std::count(tenants_.begin(), tenants_.end(), tenant));
}

// True if another component has taken a node that this one needs by name; a search does not check
// those.
bool HetGroup::is_shut_out(const Member& m) const {
  return std::any_of(m.cls->required.begin(), m.cls->required.end(),
                     [this](std::uint32_t n) { return used_.test(n); });
}

Bits HetGroup::nodes_for(const Member& m, const NodeChoice& choice) const {
  Bits nodes = s_.nodes.nodes_for(*m.cls, choice);
  for (std::size_t w = 0; w < nodes.words(); ++w) nodes.word_at(w) &= ~used_.word(w);
  return nodes;
}

std::optional<Neighbours> HetGroup::neighbours_of(const Member& m) const {
  const Queue& queue = d_.view.queue;
  return s_.nodes.neighbours_of(*m.cls, queue.line(queue[m.slot].line).share);
}

std::optional<Blocked> HetGroup::fit_now(Member& m) {
  JobClass& c = *m.cls;
  View& v = d_.view;
  const std::uint32_t tenant = s_.quota.tenant_of(c);
  if (!v.windows.speak_for(c.key.reservation)) return Blocked{Blocked::By::reservation, {}};
  if (!has_job_left(m)) return Blocked{Blocked::By::tenant_jobs, {}};
  if (is_shut_out(m)) return Blocked{};
  std::optional<Blocked> first;
  // Flavors in which the component borrows nothing are tried first.
  for (const bool borrowing : {false, true})
    for (const NodeChoice& choice : v.eligible.flavors_of(c)) {
      if (tenant == kNoIndex && borrowing) continue;
      QuotaFit fit;
      if (tenant != kNoIndex) {
        fit = v.charges.tree().fit(tenant, {choice.flavor, c.least});
        if (fit.borrows != borrowing) continue;
      }
      if (tenant != kNoIndex && !fit.fits) {
        if (!first) first = Blocked{Blocked::By::quota, fit};
        continue;
      }
      ++d_.plan.stats.attempts;
      const auto neighbours = neighbours_of(m);
      auto place = s_.nodes.place_for(v.queue.namesake_of(job(m)), c, nodes_for(m, choice),
                                      neighbours ? &*neighbours : nullptr, nullptr);
      if (place && tenant != kNoIndex) {
        fit = s_.quota.fit(tenant, s_.quota.needs_of(c, *place));
        if (!fit.fits) {
          first = Blocked{Blocked::By::quota, fit};
          continue;
        }
      }
      if (!place) {
        if (!first || first->by == Blocked::By::quota) first = Blocked{};
        continue;
      }
      take(m, {d_.now, std::move(*place), {}}, choice.flavor);
      return std::nullopt;
    }
  return first ? first : Blocked{};
}

// Tries the members in the sorted order with its `order`-th member moved to the front.
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

bool HetGroup::place_now(LineTurn& turn) {
  if (may_run()) {
    s_.former.look_from(d_.place(turn));
    lift_reservations();
    std::optional<Blocked> blocked = try_now(0);
    for (std::size_t i = 1; blocked && i < std::min(order_.size(), kMostOrders); ++i)
      if (!try_now(i)) blocked.reset();
    if (!blocked) {
      begin_trial();  // the real starts charge what the trial took
      start(turn);
      return true;
    }
    begin_trial();
    put_back_reservations();
    d_.block(turn, *blocked);
  }
  turn.head = turn.at;
  turn.head_job = turn.first;
  return false;
}

void HetGroup::start(LineTurn& turn) {
  std::vector<Share> everywhere;
  for (const Member& m : members_)
    everywhere.insert(everywhere.end(), m.found.shares.begin(), m.found.shares.end());
  for (const Member& m : members_) {
    if (!m.reservation) continue;
    (void)d_.view.windows.speak_for(m.cls->key.reservation);
    s_.book.hold_over(*m.cls, *m.reservation, everywhere);
  }
  for (const Member& m : members_) {
    s_.starter.start(*m.cls, m.slot, m.found.shares);
    d_.partition(m.cls->key.partition.value()).started.push_back(m.slot);
    if (&m == &members_.front()) continue;
    ++d_.started_ahead[job(m)];  // its own turn will skip it
    d_.order->usage_grew();
  }
  for (const Member& m : members_)
    if (m.reservation) s_.awake.wake_behind(*m.reservation, everywhere);
  d_.advance(turn);
  d_.order->started(turn);
}

// ---- ahead

// Finds the component's earliest start from `from` on, together with the components before it.
bool HetGroup::fit_ahead(Member& m, Instant from, Instant before) {
  JobClass& c = *m.cls;
  View& v = d_.view;
  if (is_shut_out(m) || !v.windows.speak_for(c.key.reservation)) return false;
  const std::uint32_t tenant = s_.quota.tenant_of(c);
  std::optional<std::pair<Slot, std::uint32_t>> best;
  for (const NodeChoice& choice : v.eligible.flavors_of(c)) {
    Instant ready = from;
    if (tenant != kNoIndex) {
      const auto quota = s_.quota.ready(tenant, {choice.flavor, c.least});
      if (!quota) continue;
      ready = std::max(ready, *quota);
    }
    std::uint64_t steps = 0;
    auto slot = v.timeline.earliest(c, nodes_for(m, choice), ready, steps,
                                    best ? best->first.start : before);
    d_.plan.stats.attempts += 1 + steps / 64;
    d_.plan.stats.steps += steps;
    if (slot && (!best || slot->start < best->first.start)) best.emplace(*slot, choice.flavor);
  }
  if (!best) return false;
  take(m, std::move(best->first), best->second);
  return true;
}

// Finds one start for all: tries again from the latest of the starts, until no component starts
// later.
bool HetGroup::try_ahead(std::size_t order, Instant before) {
  std::vector<std::size_t> turns = order_;
  std::rotate(turns.begin(), turns.begin() + static_cast<std::ptrdiff_t>(order),
              turns.begin() + static_cast<std::ptrdiff_t>(order) + 1);
  Instant at = d_.now;
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

bool HetGroup::reserve_ahead(LineTurn& turn) {
  if (!may_run()) return false;
  const bool kept = all_reserved();
  if (!kept) drop_reservations();
  if (!kept && (!d_.everything || !s_.book.may_reserve(turn))) return false;
  Instant before = Timeline::kNever;
  bool again = false;
  if (kept) {
    const Reservation& reservation = *s_.book.first_of(turn.first.job);
    before = reservation.start;
    again = s_.book.may_look_again(reservation);
  }
  if (!kept || again) {
    lift_reservations();
    bool found = false;
    for (std::size_t i = 0; !found && i < std::min(order_.size(), kMostOrders); ++i)
      found = try_ahead(i, before);
    begin_trial();
    if (found)
      reserve_found(turn);
    else if (kept)
      put_back_reservations();
    else
      return false;
    for (const Member& m : members_) s_.book.first_of(job(m))->looked = d_.now;
  }
  for (const Member& m : members_) {
    Reservation& reservation = *s_.book.first_of(job(m));
    if (&m == &members_.front() || std::exchange(reservation.told, true)) continue;
    d_.expect(reservation);
  }
  d_.tell(turn, *s_.book.first_of(turn.first.job));
  return true;
}

// ---- reservations

bool HetGroup::all_reserved() const {
  return std::all_of(members_.begin(), members_.end(),
                     [this](const Member& m) { return s_.book.first_of(job(m)) != nullptr; });
}

void HetGroup::lift_reservations() {
  for (Member& m : members_)
    if (auto reservation = s_.book.take_first(job(m))) m.reservation = std::move(reservation);
}

void HetGroup::put_back_reservations() {
  for (Member& m : members_) {
    if (!m.reservation) continue;
    const Reservation& p = *m.reservation;
    (void)d_.view.windows.speak_for(m.cls->key.reservation);
    GANTRY_ASSERT(d_.view.timeline.keep(*m.cls, p.job, p.start, p.shares),
                  "a reservation has no room any more");
    s_.book.put_back(std::move(*m.reservation));
    m.reservation.reset();
  }
}

// The components' reservations are useful only together, so all of them are dropped.
void HetGroup::drop_reservations() {
  lift_reservations();
  for (Member& m : members_) {
    if (!m.reservation) continue;
    s_.book.loosened(*m.reservation);
    s_.book.uncount(*m.reservation);
    m.reservation.reset();
  }
}

void HetGroup::reserve_found(const LineTurn& turn) {
  for (Member& m : members_) {
    (void)d_.view.windows.speak_for(m.cls->key.reservation);
    d_.view.timeline.reserve(*m.cls, m.found, job(m));
    const bool fresh = !m.reservation;
    if (!fresh) s_.book.loosened(*m.reservation);
    Reservation reservation = fresh ? Reservation{} : std::move(*m.reservation);
    m.reservation.reset();
    reservation.job = job(m);
    reservation.start = m.found.start;
    reservation.shares = m.found.shares;
    reservation.flavor = m.flavor;
    reservation.told = false;
    if (fresh) {
      s_.book.add(turn, std::move(reservation));
    } else {
      s_.book.put_back(std::move(reservation));
    }
  }
}

// ---- why the group waits

Verdict HetGroup::explain(const LineTurn& turn, Verdicts& verdicts) {
  if (members_.empty()) return verdicts.of_waiting(turn, turn.head_job);
  for (const Member& m : members_)
    if (m.cls->standing.verdict.reason != Reason::none) return m.cls->standing.verdict;
  lift_reservations();
  auto blocked = try_now(0);
  std::uint32_t room = 0;
  const Member* m = blocked ? &members_[blocked->component] : nullptr;
  if (blocked && blocked->by == Blocked::By::room)
    for (const NodeChoice& choice : d_.view.eligible.flavors_of(*m->cls)) {
      const Timeline& timeline = d_.view.timeline;
      const Grid& grid = d_.view.grid;
      const Bits nodes = nodes_for(*m, choice);
      for (std::size_t w = 0; w < nodes.words(); ++w)
        any_in_word(nodes.word(w), w, [&](std::uint32_t n) {
          room += grid.available(n) && timeline.fits(n, m->cls->demand, d_.now, d_.end_of(*m->cls),
                                                     grid.free(n)) > 0
                      ? 1
                      : 0;
          return false;
        });
    }
  begin_trial();
  put_back_reservations();
  if (blocked && blocked->by == Blocked::By::reservation)
    return {Reason::reservation, 0, 0, m->cls->key.reservation};
  if (blocked && blocked->by == Blocked::By::tenant_jobs) {
    const std::uint32_t tenant = s_.quota.tenant_of(*m->cls);
    return {Reason::tenant_jobs, d_.view.charges.running(tenant),
            *d_.view.tenancy->nodes[tenant].max_running, ""};
  }
  if (blocked && blocked->by == Blocked::By::quota) return verdicts.of_quota(blocked->fit);
  if (!blocked || (!turn.reserved && !s_.book.may_reserve(turn)))
    return verdicts.of_waiting(turn, turn.head_job);
  const HetPart& het = *m->cls->key.het;
  return {Reason::resources, room, m->cls->demand.min_nodes,
          fmt::format("{}+{}", het.leader.value(), het.offset)};
}

}  // namespace gantry::sched
