#include "ctld/sched/cycle/book.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/assert.h"

namespace gantry::sched {
namespace {

bool share_a_node(const std::vector<Share>& a, const std::vector<Share>& b) {
  return std::any_of(a.begin(), a.end(), [&](const Share& s) {
    return std::any_of(b.begin(), b.end(), [&](const Share& t) { return s.node == t.node; });
  });
}

}  // namespace

bool comes_first(const Reservation& p) {
  return p.claimed && p.guaranteed;
}

Place place_of(const Reservation& p) {
  if (comes_first(p))
    return {std::numeric_limits<std::uint32_t>::max(), std::numeric_limits<std::int32_t>::max()};
  return {p.priority, p.rank};
}

bool comes_before(const Reservation& a, const Reservation& b) {
  const auto place = [](const Reservation& p) {
    const Place of = place_of(p);
    return std::tuple{~of.first, -std::int64_t{of.second}, p.start, p.job};
  };
  const auto of_a = place(a), of_b = place(b);
  if (of_a != of_b) return of_a < of_b;
  return std::lexicographical_compare(
      a.shares.begin(), a.shares.end(), b.shares.begin(), b.shares.end(),
      [](const Share& x, const Share& y) {
        return std::pair{x.node, x.tasks} < std::pair{y.node, y.tasks};
      });
}

bool runs_on(const std::vector<Share>& place, std::uint32_t node) {
  return std::any_of(place.begin(), place.end(), [&](const Share& s) { return s.node == node; });
}

ReservationBook::~ReservationBook() {
  for (const Reservation& p : held_over_) lift(p);
}

Reservation* ReservationBook::of(const LineTurn& turn) {
  Reservations& all = d_.left.reservations;
  if (all.empty()) return nullptr;
  const auto of_job = all.find(turn.first.job);
  if (of_job == all.end() || of_job->second.size() <= turn.ahead) return nullptr;
  return &of_job->second[turn.ahead];
}

Reservation* ReservationBook::first_of(JobId job) {
  const auto of_job = d_.left.reservations.find(job);
  return of_job == d_.left.reservations.end() || of_job->second.empty() ? nullptr
                                                                        : &of_job->second[0];
}

void ReservationBook::count(const Reservation& reservation) {
  const std::uint32_t partition = reservation.partition.value();
  if (by_partition_.size() <= partition) by_partition_.resize(partition + 1);
  ++by_partition_[partition];
  ++all_;
}

void ReservationBook::uncount(const Reservation& reservation) {
  GANTRY_ASSERT(reservation.partition.value() < by_partition_.size() &&
                    by_partition_[reservation.partition.value()] > 0,
                "a reservation was given up that had not been counted");
  --by_partition_[reservation.partition.value()];
  --all_;
}

// Keeps an array's reservations in order, so that an element takes the same one in a plan after
// changes as in a plan that looks at everything.
void ReservationBook::enter(Reservation reservation) {
  count(reservation);
  auto& of_job = d_.left.reservations[reservation.job];
  const auto at = std::upper_bound(of_job.begin(), of_job.end(), reservation, comes_before);
  of_job.insert(at, std::move(reservation));
}

Reservation& ReservationBook::add(const LineTurn& turn, Reservation reservation) {
  reservation.partition = PartitionId{turn.partition};
  reservation.priority = d_.view.queue.partition(turn.partition).priority;
  reservation.rank = turn.first.rank;
  reservation.aged = turn.first.raised;
  count(reservation);
  auto& of_job = d_.left.reservations[reservation.job];
  of_job.push_back(std::move(reservation));
  return of_job.back();
}

void ReservationBook::put_back(Reservation reservation) {
  d_.left.reservations[reservation.job].push_back(std::move(reservation));
}

void ReservationBook::use_up(const LineTurn& turn) {
  const auto of_job = d_.left.reservations.find(turn.first.job);
  of_job->second.erase(of_job->second.begin() + turn.ahead);
  if (of_job->second.empty()) d_.left.reservations.erase(of_job);
}

std::optional<Reservation> ReservationBook::take_first(JobId job) {
  const auto of_job = d_.left.reservations.find(job);
  if (of_job == d_.left.reservations.end()) return std::nullopt;
  std::optional<Reservation> first;
  if (!of_job->second.empty()) {
    first = std::move(of_job->second[0]);
    lift(*first);
  }
  d_.left.reservations.erase(of_job);
  return first;
}

bool ReservationBook::may_reserve(const LineTurn& turn) const {
  const std::uint32_t made =
      turn.partition < by_partition_.size() ? by_partition_[turn.partition] : 0;
  return made < d_.policy.reservations || all_ < d_.policy.ahead;
}

bool ReservationBook::may_look_again(const Reservation& reservation) {
  return d_.everything && d_.now - reservation.looked >= kReplanPeriod &&
         d_.plan.stats.steps < d_.policy.replan_steps && looked_again_++ < d_.policy.replans;
}

void ReservationBook::lift(const Reservation& reservation) {
  d_.view.timeline.lift(reservation.job, reservation.start, reservation.shares);
}

bool ReservationBook::keep(Reservation& reservation, const JobClass& c) {
  if (d_.view.timeline.keep(c, reservation.job, reservation.start, reservation.shares)) return true;
  Instant late = reservation.start;
  if (reservation.start == d_.now) late = d_.now + Timeline::kOverdue;
  for (const Share& s : reservation.shares)
    for (const std::uint32_t slot : d_.view.running.on_node(s.node))
      if (const Placement& p = d_.view.running[slot]; p.leaving && p.ends_by)
        late = std::max(late, *p.ends_by);
  if (late == reservation.start) return false;
  reservation.start = late;
  if (!reservation.leaving.empty()) reservation.leave_by = late;
  return d_.view.timeline.keep(c, reservation.job, reservation.start, reservation.shares);
}

void ReservationBook::loosened(const Reservation& reservation) {
  for (const Share& s : reservation.shares) d_.left.memory.touch_node(s.node);
}

// While a plan is made, free resources only shrink. So a request that has failed once need not be
// tried again, and a plan that skips sleeping partitions equals one that does not. Therefore, when
// a job starts elsewhere than on its reserved nodes, those stay taken until the plan is made.
void ReservationBook::hold_over(const JobClass& c, const Reservation& reservation,
                                const std::vector<Share>& place) {
  for (const Share& s : reservation.shares) {
    d_.left.memory.touch_node(s.node);
    if (runs_on(place, s.node)) continue;
    Reservation part = reservation;
    part.shares = {s};
    if (d_.view.timeline.keep(c, part.job, part.start, part.shares))
      held_over_.push_back(std::move(part));
    else
      d_.cut = true;
    d_.again = true;
  }
}

std::vector<Reservation> ReservationBook::break_in_way(JobId but, const std::vector<Share>& shares,
                                                       Instant from, Instant until) {
  std::vector<Reservation> broken;
  for (auto at = d_.left.reservations.begin(); at != d_.left.reservations.end();) {
    const auto slot = d_.view.queue.find(at->first);
    if (at->first != but && slot) {
      const JobClass& c =
          d_.view.queue.job_class(d_.view.queue.line(d_.view.queue[*slot].line).class_index);
      std::erase_if(at->second, [&](Reservation& p) {
        if (p.claimed || p.aged || p.start >= until ||
            Timeline::end_of(p.start, c.key.least_limit()) <= from ||
            !share_a_node(p.shares, shares))
          return false;
        lift(p);
        broken.push_back(std::move(p));
        return true;
      });
    }
    at = at->second.empty() ? d_.left.reservations.erase(at) : std::next(at);
  }
  return broken;
}

void ReservationBook::mend(std::vector<Reservation> broken) {
  for (Reservation& p : broken) {
    const auto slot = d_.view.queue.find(p.job);
    JobClass& c =
        d_.view.queue.job_class(d_.view.queue.line(d_.view.queue[*slot].line).class_index);
    if (d_.view.windows.speak_for(c.key.reservation) &&
        d_.view.timeline.keep(c, p.job, p.start, p.shares)) {
      put_back(std::move(p));
      continue;
    }
    loosened(p);
    d_.again = true;
    uncount(p);
    std::erase_if(d_.plan.expected,
                  [&](const Expected& e) { return e.job == p.job && e.start == p.start; });
  }
  (void)d_.view.windows.speak_for("");
}

void ReservationBook::end_plan() {
  for (auto& [job, of_job] : d_.left.reservations)
    if (of_job.size() > 1) std::sort(of_job.begin(), of_job.end(), comes_before);
  if (!d_.policy.keep_reservations) drop_if([](const Reservation& p) { return !p.claimed; });
}

}  // namespace gantry::sched
