#include "ctld/sched/cycle/cycle.h"

#include <algorithm>
#include <limits>

#include "common/assert.h"
#include "ctld/sched/place/place.h"

namespace gantry::sched {
namespace {

View& begun(View& view) {
  view.eligible.begin_plan();
  view.charges.settle();
  return view;
}

}  // namespace

Cycle::Cycle(Replica& replica, Instant now, const Policy& policy)
    : d_(begun(replica.view()), replica.left(), now, policy),
      trial_(d_),
      quota_(d_, trial_),
      slices_(d_, trial_),
      nodes_(d_),
      book_(d_),
      starter_(d_, trial_, quota_),
      former_(d_, quota_, nodes_, book_, starter_),
      awake_(d_, quota_, nodes_, book_),
      ahead_(d_, quota_, nodes_, book_, slices_),
      victims_(d_, quota_, nodes_, book_),
      room_(d_, trial_, quota_, book_, ahead_, starter_, victims_),
      verdicts_(d_, quota_, nodes_, book_, slices_) {
  View& v = d_.view;
  Left& left = d_.left;
  if (nodes_.scores() != nullptr) v.scores.count(v.running, v.queue);
  d_.everything = !left.memory.may_pass_over(now, policy, v.windows.next_boundary(now)) ||
                  left.requests.generation() != v.eligible.generation();
  if (d_.everything) {
    left.requests.begin(v.eligible.generation());
    left.requests.forget_failures();
    former_.begin_anew();
    begin_order(v.queue.busy(), std::nullopt);
  } else {
    auto resumed = former_.begin_after_changes();
    const bool touched = !resumed.nodes.empty();
    const auto partitions = awake_.begin(std::move(resumed.woken), resumed.nodes, touched);
    begin_order(partitions, awake_.passing());
  }
  left.memory.forget_changes();
}

void Cycle::begin_order(const std::vector<std::uint32_t>& partitions,
                        std::optional<Order::Passing> passing) {
  View& v = d_.view;
  const bool fair = d_.policy.fair_share && v.tenancy->fair_share;
  d_.order.emplace(
      v.queue, fair ? &v.shares : nullptr, quota_.on() ? &v.charges.tree() : nullptr, d_.now,
      [this](std::uint32_t partition, std::uint32_t class_index) {
        return quota_.standing(partition, class_index);
      },
      d_.left.memory.keys, partitions, std::move(passing));
}

// ---- whose turn it is

std::optional<LineTurn> Cycle::next_turn() {
  if (d_.plan.stats.attempts >= d_.policy.attempts || d_.plan.starts.size() >= d_.policy.starts)
    d_.plan.stats.budget_spent = true;
  while (!d_.plan.stats.budget_spent && !d_.cut && d_.blocked.size() <= d_.policy.depth) {
    const auto front = d_.order->front();
    if (!front) break;
    former_.keep_from(*front);
    if (d_.cut) break;
    if (d_.order->front() != front) continue;  // a reservation took a part of its quota
    std::optional<LineTurn> turn = d_.order->next();
    PartitionProgress& p = d_.partition(turn->partition);
    p.begun = true;
    if (turn->passed > 0) p.passed_over = true;
    if (turn->fresh) {
      ++d_.plan.stats.classes;
      turn->at = d_.jobs(*turn).begin();
      d_.view.eligible.refresh(d_.cls(*turn), d_.view.grid);
      note_step(*turn);
    }
    if (settle(*turn)) return turn;
    if (turn->head)
      close(*turn);
    else
      d_.order->done(*turn);
  }
  no_more_turns();
  return std::nullopt;
}

// Lines that were blocked have a verdict already; what the other lines wait for is not known.
void Cycle::no_more_turns() {
  for (const LineTurn& turn : d_.order->drain())
    if (turn.head) closed_.push_back(turn);
  // The last verdicts on lines of skipped partitions are still true.
  std::erase_if(closed_,
                [this](const LineTurn& t) { return d_.partition(t.partition).passed_over; });
  former_.keep_from({0, std::numeric_limits<std::int32_t>::min()});
}

void Cycle::again(const LineTurn& turn) {
  if (!d_.jobs(turn).at_end(turn.at))
    d_.order->again(turn);
  else if (turn.head)
    close(turn);
  else
    d_.order->done(turn);
}

void Cycle::close(const LineTurn& turn) {
  closed_.push_back(turn);
  d_.order->done(turn);
}

bool Cycle::settle(LineTurn& turn) {
  if (d_.started_ahead.empty()) return true;
  while (!d_.jobs(turn).at_end(turn.at)) {
    const Waiting& w = d_.job(turn, turn.at);
    const auto ahead = d_.started_ahead.find(w.job);
    if (ahead == d_.started_ahead.end() || turn.started > 0) return true;
    if (ahead->second < w.startable) {
      turn.started = ahead->second;
      return true;
    }
    turn.started = w.startable - 1;
    if (!d_.advance(turn)) return false;
  }
  return false;
}

void Cycle::note_step(const LineTurn& turn) {
  if (!d_.order->wants_note(turn)) return;
  JobClass& c = d_.cls(turn);
  const auto choices = d_.view.eligible.flavors_of(c);
  if (choices.size() != 1 || c.standing.verdict.reason != Reason::none)
    d_.order->note(turn, std::nullopt);
  else
    d_.order->note(turn, Step{turn.first,
                              d_.view.queue.line(turn.line).share,
                              nodes_.request_of(c, choices[0]),
                              {choices[0].flavor, c.least}});
}

// ---- the job starts now

bool Cycle::place_now(LineTurn& turn) {
  JobClass& c = d_.cls(turn);
  if (c.key.het) return HetGroup(het_steps(), turn).place_now(turn);
  if (c.standing.verdict.reason == Reason::none) {
    ++d_.plan.stats.attempts;
    // A claim is charged to the quota already; the job must not be charged twice.
    const Reservation* reservation = book_.of(turn);
    const bool charged = reservation != nullptr && reservation->claimed;
    const auto needs = charged ? quota_.needs_of(c, reservation->shares) : std::vector<QuotaNeed>{};
    if (charged) quota_.uncharge(reservation->job);
    auto blocked = try_now(turn);
    if (blocked && charged && blocked->by == Blocked::By::quota) blocked = try_before_others(turn);
    if (!blocked) return true;
    if (charged) quota_.charge(d_.job(turn, turn.at), c, needs);
    d_.block(turn, *blocked);
  }
  turn.head = turn.at;
  turn.head_job = turn.first;
  if (const Blocked* why = d_.why(turn); why != nullptr && why->by == Blocked::By::room)
    slices_.note(turn);
  return false;
}

// Tries a claim for which no job has to leave any more. Claims of other jobs that may not start yet
// do not count in the quota: the leaving jobs still use what they claim, and are counted already.
std::optional<Blocked> Cycle::try_before_others(LineTurn& turn) {
  std::vector<PlanQuota::Charged> others;
  for (const auto& [job, of_job] : book_.in_force())
    if (job != turn.first.job && !of_job.empty() &&
        (!of_job[0].leaving.empty() || of_job[0].start > d_.now))
      for (const PlanQuota::Charged& c : quota_.charged())
        if (c.job == job) others.push_back(c);
  QuotaTree& tree = d_.view.charges.tree();
  for (const PlanQuota::Charged& c : others) tree.remove(c.tenant, c.need);
  const auto blocked = try_now(turn);
  for (const PlanQuota::Charged& c : others) tree.add(c.tenant, c.need);
  return blocked;
}

std::optional<Blocked> Cycle::try_now(LineTurn& turn) {
  JobClass& c = d_.cls(turn);
  const std::uint32_t tenant = quota_.tenant_of(c);
  if (!d_.view.windows.speak_for(c.key.reservation)) return Blocked{Blocked::By::reservation, {}};
  if (!quota_.has_job_left(tenant)) return Blocked{Blocked::By::tenant_jobs, {}};
  const auto choices = d_.view.eligible.flavors_of(c);
  std::optional<Blocked> first;
  // Flavors in which the job borrows nothing are tried first.
  for (const bool borrowing : {false, true}) {
    for (const NodeChoice& choice : choices) {
      if (tenant != kNoIndex) {
        const QuotaFit fit = d_.view.charges.tree().fit(tenant, {choice.flavor, c.least});
        if (fit.borrows != borrowing) continue;
        if (!fit.fits) {
          if (!first) first = Blocked{Blocked::By::quota, fit};
          continue;
        }
      } else if (borrowing) {
        continue;
      }
      const auto blocked = try_choice(turn, tenant, choice);
      if (!blocked) return std::nullopt;
      if (!first || first->by == Blocked::By::quota) first = blocked;
    }
  }
  return first ? first : Blocked{};
}

std::optional<Blocked> Cycle::try_choice(LineTurn& turn, std::uint32_t tenant,
                                         const NodeChoice& choice) {
  JobClass& c = d_.cls(turn);
  const std::uint32_t request = nodes_.request_of(c, choice);
  const bool failed =
      request != RequestKeys::kNone && d_.left.requests.known_to_fail(request, d_.place(turn));
  if (failed && book_.of(turn) == nullptr) return Blocked{};
  former_.look_from(d_.place(turn));
  const Reservation* reservation = book_.of(turn);
  // look_from() may have taken out this job's own reservation.
  if (failed && reservation == nullptr) return Blocked{};
  if (reservation != nullptr) book_.lift(*reservation);
  if (failed && !has_room_on(c, *reservation)) {
    put_back(c, *reservation);
    return Blocked{};
  }
  const auto neighbours = nodes_.neighbours_of(c, d_.view.queue.line(turn.line).share);
  // For nodes that were noted as too small, this reservation counts as taken, so the element that
  // has it does not use them.
  Bits* const not_too_small = reservation == nullptr ? nodes_.hopeful(turn, choice) : nullptr;
  auto place = nodes_.place_for(turn.first.namesake, c, nodes_.nodes_for(c, choice),
                                neighbours ? &*neighbours : nullptr, not_too_small);
  std::optional<Blocked> blocked;
  if (!place) {
    if (request != RequestKeys::kNone) d_.left.requests.failed(request, d_.place(turn));
    blocked = Blocked{};
  } else if (tenant != kNoIndex) {
    const QuotaFit exact = quota_.fit(tenant, quota_.needs_of(c, *place));
    if (!exact.fits) place = place_within_quota(turn, tenant, choice);
    if (!place) blocked = Blocked{Blocked::By::quota, exact};
  }
  if (blocked && reservation != nullptr) put_back(c, *reservation);
  if (!blocked) start(turn, *place);
  return blocked;
}

// What a job takes can depend on its nodes, as with the memory of whole nodes. If the best place
// takes more than the quota has left, this looks for one among the nodes that take less.
std::optional<std::vector<Share>> Cycle::place_within_quota(const LineTurn& turn,
                                                            std::uint32_t tenant,
                                                            const NodeChoice& choice) {
  JobClass& c = d_.cls(turn);
  const std::uint32_t tasks = (c.demand.tasks + c.demand.max_nodes - 1) / c.demand.max_nodes;
  Bits cheap = nodes_.nodes_for(c, choice);
  std::uint64_t dropped = 0;
  for (std::uint32_t n = 0; n < d_.view.grid.size(); ++n)
    if (cheap.test(n) && !quota_.fit(tenant, quota_.needs_of(c, {{n, tasks}})).fits) {
      cheap.clear(n);
      ++dropped;
    }
  d_.plan.stats.attempts += 1 + d_.view.grid.size() / 64;
  if (dropped == 0) return std::nullopt;
  const auto neighbours = nodes_.neighbours_of(c, d_.view.queue.line(turn.line).share);
  auto place =
      nodes_.place_for(turn.first.namesake, c, cheap, neighbours ? &*neighbours : nullptr, nullptr);
  if (place && !quota_.fit(tenant, quota_.needs_of(c, *place)).fits) place.reset();
  return place;
}

// True if there is room for a part of the job on one of the reservation's nodes.
bool Cycle::has_room_on(const JobClass& c, const Reservation& reservation) const {
  const View& v = d_.view;
  return std::any_of(reservation.shares.begin(), reservation.shares.end(), [&](const Share& s) {
    return v.grid.available(s.node) &&
           v.timeline.fits(s.node, c.demand, d_.now, d_.end_of(c), v.grid.free(s.node)) > 0;
  });
}

void Cycle::put_back(const JobClass& c, const Reservation& reservation) {
  GANTRY_ASSERT(d_.view.timeline.keep(c, reservation.job, reservation.start, reservation.shares),
                "a reservation has no room any more");
}

// Starts the turn's job; its reservation, if it has one, must be lifted already.
void Cycle::start(LineTurn& turn, const std::vector<Share>& place) {
  std::optional<Reservation> ahead;
  if (const Reservation* reservation = book_.of(turn)) {
    book_.hold_over(d_.cls(turn), *reservation, place);
    ahead = *reservation;
    book_.use_up(turn);
  }
  starter_.start(turn, place);
  if (ahead) awake_.wake_behind(*ahead, place);
}

// ---- ahead, and the end of the plan

bool Cycle::reserve_ahead(LineTurn& turn) {
  if (d_.cls(turn).key.het) return HetGroup(het_steps(), turn).reserve_ahead(turn);
  return ahead_.reserve(turn);
}

void Cycle::estimate() {
  former_.tell();
  ahead_.estimate(closed_);
}

void Cycle::explain() {
  verdicts_.explain(closed_, [this](const LineTurn& turn) {
    return HetGroup(het_steps(), turn).explain(turn, verdicts_);
  });
}

Plan Cycle::take_plan() {
  if (victims_.missed_starts()) d_.again = true;
  awake_.remember(closed_);
  book_.end_plan();
  if (d_.everything) d_.left.searches_cut = victims_.cut();
  d_.plan.stats.everything = d_.everything;
  return std::move(d_.plan);
}

}  // namespace gantry::sched
