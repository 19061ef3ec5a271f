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

bool comes_first(const Promise& p) {
  return p.claimed && p.guaranteed;
}

Place place_of(const Promise& p) {
  if (comes_first(p))
    return {std::numeric_limits<std::uint32_t>::max(), std::numeric_limits<std::int32_t>::max()};
  return {p.priority, p.rank};
}

bool comes_before(const Promise& a, const Promise& b) {
  const auto place = [](const Promise& p) {
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
  for (const Promise& p : held_over_) lift(p);
}

Promise* ReservationBook::of(const Turn& turn) {
  Promises& all = d_.left.promises;
  if (all.empty()) return nullptr;
  const auto of_job = all.find(turn.first.job);
  if (of_job == all.end() || of_job->second.size() <= turn.ahead) return nullptr;
  return &of_job->second[turn.ahead];
}

Promise* ReservationBook::first_of(JobId job) {
  const auto of_job = d_.left.promises.find(job);
  return of_job == d_.left.promises.end() || of_job->second.empty() ? nullptr : &of_job->second[0];
}

void ReservationBook::count(const Promise& promise) {
  const std::uint32_t partition = promise.partition.value();
  if (by_partition_.size() <= partition) by_partition_.resize(partition + 1);
  ++by_partition_[partition];
  ++all_;
}

void ReservationBook::uncount(const Promise& promise) {
  GANTRY_ASSERT(promise.partition.value() < by_partition_.size() &&
                    by_partition_[promise.partition.value()] > 0,
                "a reservation was given up that had not been counted");
  --by_partition_[promise.partition.value()];
  --all_;
}

// Which one an element of an array takes is the same in a plan after changes as in one anew.
void ReservationBook::enter(Promise promise) {
  count(promise);
  auto& of_job = d_.left.promises[promise.job];
  const auto at = std::upper_bound(of_job.begin(), of_job.end(), promise, comes_before);
  of_job.insert(at, std::move(promise));
}

Promise& ReservationBook::add(const Turn& turn, Promise promise) {
  promise.partition = PartitionId{turn.partition};
  promise.priority = d_.view.queue.partition(turn.partition).priority;
  promise.rank = turn.first.rank;
  promise.aged = turn.first.raised;
  count(promise);
  auto& of_job = d_.left.promises[promise.job];
  of_job.push_back(std::move(promise));
  return of_job.back();
}

void ReservationBook::put_back(Promise promise) {
  d_.left.promises[promise.job].push_back(std::move(promise));
}

void ReservationBook::use_up(const Turn& turn) {
  const auto of_job = d_.left.promises.find(turn.first.job);
  of_job->second.erase(of_job->second.begin() + turn.ahead);
  if (of_job->second.empty()) d_.left.promises.erase(of_job);
}

std::optional<Promise> ReservationBook::take_first(JobId job) {
  const auto of_job = d_.left.promises.find(job);
  if (of_job == d_.left.promises.end()) return std::nullopt;
  std::optional<Promise> first;
  if (!of_job->second.empty()) {
    first = std::move(of_job->second[0]);
    lift(*first);
  }
  d_.left.promises.erase(of_job);
  return first;
}

bool ReservationBook::may_reserve(const Turn& turn) const {
  const std::uint32_t made =
      turn.partition < by_partition_.size() ? by_partition_[turn.partition] : 0;
  return made < d_.policy.reservations || all_ < d_.policy.ahead;
}

bool ReservationBook::may_look_again(const Promise& promise) {
  return d_.everything && d_.now - promise.looked >= kReplanPeriod &&
         d_.plan.stats.steps < d_.policy.replan_steps && looked_again_++ < d_.policy.replans;
}

void ReservationBook::lift(const Promise& promise) {
  d_.view.timeline.lift(promise.job, promise.start, promise.shares);
}

bool ReservationBook::keep(Promise& promise, const JobClass& c) {
  if (d_.view.timeline.keep(c, promise.job, promise.start, promise.shares)) return true;
  Instant late = promise.start;
  if (promise.start == d_.now) late = d_.now + Timeline::kOverdue;
  for (const Share& s : promise.shares)
    for (const std::uint32_t slot : d_.view.running.on_node(s.node))
      if (const Placement& p = d_.view.running[slot]; p.leaving && p.ends_by)
        late = std::max(late, *p.ends_by);
  if (late == promise.start) return false;
  promise.start = late;
  if (!promise.leaving.empty()) promise.leave_by = late;
  return d_.view.timeline.keep(c, promise.job, promise.start, promise.shares);
}

void ReservationBook::loosened(const Promise& promise) {
  for (const Share& s : promise.shares) d_.left.memory.touch_node(s.node);
}

// While a plan is made room only shrinks: what has failed once need not be tried again, and a plan
// that passes over those who sleep equals one that does not. So what was promised to the job that
// starts, on nodes that it does not start on, stays taken until the plan is made.
void ReservationBook::hold_over(const JobClass& c, const Promise& promise,
                                const std::vector<Share>& place) {
  for (const Share& s : promise.shares) {
    d_.left.memory.touch_node(s.node);
    if (runs_on(place, s.node)) continue;
    Promise part = promise;
    part.shares = {s};
    if (d_.view.timeline.keep(c, part.job, part.start, part.shares))
      held_over_.push_back(std::move(part));
    else
      d_.cut = true;
    d_.again = true;
  }
}

// On these nodes and in this time; not what others claim, nor what jobs have waited long for.
std::vector<Promise> ReservationBook::break_in_way(JobId but, const std::vector<Share>& shares,
                                                   Instant from, Instant until) {
  std::vector<Promise> broken;
  for (auto at = d_.left.promises.begin(); at != d_.left.promises.end();) {
    const auto slot = d_.view.queue.find(at->first);
    if (at->first != but && slot) {
      const JobClass& c =
          d_.view.queue.job_class(d_.view.queue.line(d_.view.queue[*slot].line).class_index);
      std::erase_if(at->second, [&](Promise& p) {
        if (p.claimed || p.aged || p.start >= until ||
            Timeline::end_of(p.start, c.key.time_limit) <= from || !share_a_node(p.shares, shares))
          return false;
        lift(p);
        broken.push_back(std::move(p));
        return true;
      });
    }
    at = at->second.empty() ? d_.left.promises.erase(at) : std::next(at);
  }
  return broken;
}

// Where there is still room for them. The others are planned anew, by the next plan.
void ReservationBook::mend(std::vector<Promise> broken) {
  for (Promise& p : broken) {
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

// What others have been promised for some of that time.
std::vector<HeldRoom> ReservationBook::room_of_others(JobId but, bool guaranteed, Instant from,
                                                      Instant until) const {
  std::vector<HeldRoom> held;
  for (const auto& [job, of_job] : in_force()) {
    if (job == but) continue;
    const auto slot = d_.view.queue.find(job);
    if (!slot) continue;
    const JobClass& c =
        d_.view.queue.job_class(d_.view.queue.line(d_.view.queue[*slot].line).class_index);
    for (const Promise& p : of_job)
      if ((!guaranteed || p.claimed || p.aged) && p.start < until &&
          from < Timeline::end_of(p.start, c.key.time_limit))
        for (const Share& s : p.shares)
          held.push_back({s.node, need_for(c.demand, d_.view.grid.room(s.node), s.tasks)});
  }
  return held;
}

void ReservationBook::end_plan() {
  for (auto& [job, of_job] : d_.left.promises)
    if (of_job.size() > 1) std::sort(of_job.begin(), of_job.end(), comes_before);
  if (!d_.policy.keep_promises) drop_if([](const Promise& p) { return !p.claimed; });
}

void ReservationBook::tell(Turn& turn, Promise& promise) {
  d_.expect(promise);
  promise.told = true;
  if (turn.at == *turn.head) turn.reserved = true;
  ++turn.ahead;
  d_.advance(turn);
}

}  // namespace gantry::sched
