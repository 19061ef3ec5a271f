#include "ctld/sched/cycle/ahead.h"

#include <algorithm>
#include <queue>

#include "common/assert.h"

namespace gantry::sched {

std::optional<std::pair<Slot, std::uint32_t>> Ahead::earliest(const JobClass& c, Instant before) {
  std::optional<std::pair<Slot, std::uint32_t>> best;
  if (before <= d_.now || !d_.view.windows.speak_for(c.key.reservation)) return best;
  const std::uint32_t tenant = quota_.tenant_of(c);
  for (const NodeChoice& choice : d_.view.eligible.flavors_of(c)) {
    Instant from = d_.now;
    if (tenant != kNoIndex) {
      const auto ready = quota_.ready(tenant, {choice.flavor, c.least});
      if (!ready) continue;
      from = *ready;
    }
    std::uint64_t steps = 0;
    if (best) before = best->first.start;
    auto slot = d_.view.timeline.earliest(c, nodes_.nodes_for(c, choice), from, steps, before);
    d_.plan.stats.attempts += 1 + steps / 64;
    d_.plan.stats.steps += steps;
    if (slot && (!best || slot->start < best->first.start))
      best = std::pair{std::move(*slot), choice.flavor};
  }
  return best;
}

bool Ahead::reserve(LineTurn& turn) {
  JobClass& c = d_.cls(turn);
  if (c.standing.verdict.reason != Reason::none) return false;
  Reservation* kept = book_.of(turn);
  if (kept == nullptr &&
      (!d_.everything || !book_.may_reserve(turn) || slices_.waits_for_slices(c)))
    return false;
  const bool again = kept != nullptr && kept->leaving.empty() && book_.may_look_again(*kept);
  if (kept == nullptr || again) {
    const JobId id = d_.job(turn, turn.at).job;
    if (kept != nullptr) book_.lift(*kept);
    const bool claimed = kept != nullptr && kept->claimed;
    if (claimed) quota_.uncharge(id);
    auto found = earliest(c, kept != nullptr ? kept->start : Timeline::kNever);
    if (kept != nullptr) kept->looked = d_.now;
    if (found) {
      if (kept != nullptr) book_.loosened(*kept);
      d_.view.timeline.reserve(c, found->first, id);
      Reservation reservation = kept != nullptr ? *kept : Reservation{};
      reservation.job = id;
      reservation.looked = d_.now;
      reservation.start = found->first.start;
      reservation.shares = std::move(found->first.shares);
      reservation.flavor = found->second;
      if (kept != nullptr)
        *kept = std::move(reservation);
      else
        kept = &book_.add(turn, std::move(reservation));
    } else if (kept != nullptr) {
      GANTRY_ASSERT(d_.view.timeline.keep(c, kept->job, kept->start, kept->shares),
                    "a reservation has no room any more");
    } else {
      return false;
    }
    if (claimed) quota_.charge(d_.job(turn, turn.at), c, quota_.needs_of(c, kept->shares));
  }
  d_.tell(turn, *kept);
  return true;
}

void Ahead::estimate(std::span<const LineTurn> closed) {
  if (d_.policy.estimates == 0 || d_.plan.stats.budget_spent) return;
  d_.plan.estimated = true;
  const auto later = [this](const LineTurn& a, const LineTurn& b) {
    const auto pa = d_.view.queue.partition(a.partition).priority;
    const auto pb = d_.view.queue.partition(b.partition).priority;
    return pa != pb ? pa < pb : before(b.first, a.first);
  };
  std::priority_queue<LineTurn, std::vector<LineTurn>, decltype(later)> turns(later);
  for (const LineTurn& t : closed)
    if (d_.cls(t).standing.verdict.reason == Reason::none && !d_.cls(t).key.het &&
        !d_.jobs(t).at_end(t.at))
      turns.push(t);
  std::vector<std::pair<JobId, Slot>> guesses;
  for (std::uint32_t n = 0; n < d_.policy.estimates && !turns.empty(); ++n) {
    LineTurn turn = turns.top();
    turns.pop();
    JobClass& c = d_.cls(turn);
    const JobId id = d_.job(turn, turn.at).job;
    if (const auto slot = earliest(c)) {
      d_.view.timeline.reserve(c, slot->first, id);
      guesses.emplace_back(id, slot->first);
      if (d_.plan.expected.empty() || d_.plan.expected.back().job != id)
        d_.plan.expected.push_back({id, slot->first.start, {}});
      if (d_.advance(turn)) turns.push(turn);
    }
  }
  for (auto g = guesses.rbegin(); g != guesses.rend(); ++g) {
    d_.view.timeline.lift(g->first, g->second.start, g->second.shares);
    for (const Share& s : g->second.shares) d_.view.timeline.clear(s.node);
  }
}

}  // namespace gantry::sched
