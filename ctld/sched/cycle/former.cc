#include "ctld/sched/cycle/former.h"

#include <algorithm>
#include <utility>

#include "ctld/sched/cycle/exchange.h"
#include "ctld/sched/place/place.h"

namespace gantry::sched {

void FormerReservations::sort_waiting() {
  std::sort(waiting_.begin(), waiting_.end(),  // so that the last one comes first
            [](const Reservation& a, const Reservation& b) { return comes_before(b, a); });
}

void FormerReservations::begin_anew() {
  d_.view.timeline.begin(d_.now);
  const std::set<std::uint32_t> lines = lines_to_deal(d_.view.queue, book_.in_force());
  book_.drop_if([this](Reservation& p) {
    refresh(p);
    waiting_.push_back(std::move(p));
    return true;
  });
  if (!lines.empty())
    deal_out(d_.view.queue, waiting_, lines, [this](Reservation& p) { refresh(p); });
  sort_waiting();
}

FormerReservations::Resumed FormerReservations::begin_after_changes() {
  d_.view.timeline.resume(d_.now);
  const Memory& memory = d_.left.memory;
  Resumed resumed{{memory.nodes().begin(), memory.nodes().end()}, {}};
  std::vector<Reservation> changed = take_changed(resumed.nodes);
  for (const auto& [job, of_job] : book_.in_force())
    for (const Reservation& p : of_job) {
      book_.count(p);
      ++places_[place_of(p)];
    }
  for (const Reservation& p : changed) resumed.woken.insert(p.partition.value());
  keep_where_they_are(std::move(changed));
  return resumed;
}

// Takes out of the timeline: reservations on changed nodes, of changed jobs and of lines whose
// reservations are assigned again, claims, and those that are due. All reservations that share a
// node with one of them are taken out as well; `nodes` grows by their nodes.
std::vector<Reservation> FormerReservations::take_changed(std::set<std::uint32_t>& nodes) {
  std::set<JobId> jobs;
  std::vector<JobId> left;
  const auto add = [&](JobId job) {
    if (book_.in_force().contains(job) && jobs.insert(job).second) left.push_back(job);
  };
  // The components of a heterogeneous job have the place of their leader. When the leader's rank
  // has changed, the reservations of all of them have to move; one that stayed at the old place
  // would be taken out at the leader's turn, and the group would lose the other reservations, too.
  for (const JobId job : d_.left.memory.jobs()) {
    add(job);
    const auto slot = d_.view.queue.find(job);
    if (!slot) continue;
    const auto& het = d_.class_of(d_.view.queue[*slot]).key.het;
    for (std::uint32_t i = 0; het && i < het->size; ++i) add(het->member(i));
  }
  const std::set<std::uint32_t> lines = lines_to_deal(d_.view.queue, book_.in_force());
  if (!lines.empty())
    for (const auto& [job, of_job] : book_.in_force())
      if (const auto slot = d_.view.queue.find(job);
          slot && lines.contains(d_.view.queue[*slot].line))
        add(job);
  for (const auto& [job, of_job] : book_.in_force())
    for (const Reservation& p : of_job)
      if (p.claimed || p.start <= d_.now + Timeline::kOverdue) add(job);
  for (const std::uint32_t n : nodes) d_.view.timeline.each_reserved(n, add);
  while (!left.empty()) {
    const JobId job = left.back();
    left.pop_back();
    for (const Reservation& p : book_.in_force().at(job))
      for (const Share& s : p.shares)
        if (nodes.insert(s.node).second) d_.view.timeline.each_reserved(s.node, add);
  }
  std::vector<Reservation> taken;
  book_.drop_if([&](Reservation& p) {
    if (!jobs.contains(p.job)) return false;
    book_.lift(p);
    refresh(p);
    taken.push_back(std::move(p));
    return true;
  });
  for (const std::uint32_t n : nodes) d_.view.timeline.clear(n);
  if (!lines.empty()) deal_out(d_.view.queue, taken, lines, [this](Reservation& p) { refresh(p); });
  return taken;
}

// Most reservations are simply kept where they were. Claims, due ones, and those that share a node
// or a job with them are kept when it is their turn, as in any plan.
void FormerReservations::keep_where_they_are(std::vector<Reservation> reservations) {
  const auto later = [&](Reservation& p) { waiting_.push_back(std::move(p)); };
  std::set<std::uint32_t> nodes;
  std::set<JobId> jobs;
  const auto apart = [&](const Reservation& p) {
    return !p.claimed && p.start > d_.now + Timeline::kOverdue && !jobs.contains(p.job) &&
           std::none_of(p.shares.begin(), p.shares.end(),
                        [&](const Share& s) { return nodes.contains(s.node); });
  };
  for (std::size_t before = reservations.size() + 1; before != reservations.size();) {
    before = reservations.size();
    std::erase_if(reservations, [&](Reservation& p) {
      if (apart(p)) return false;
      for (const Share& s : p.shares) nodes.insert(s.node);
      jobs.insert(p.job);
      later(p);
      return true;
    });
  }
  std::sort(reservations.begin(), reservations.end(), comes_before);
  std::size_t kept = 0;
  while (kept < reservations.size() && keep_there(reservations[kept])) ++kept;
  if (kept < reservations.size()) {  // one of them does not fit; which one depends on the order
    for (std::size_t i = 0; i < kept; ++i) book_.lift(reservations[i]);
    for (const Reservation& p : reservations)
      for (const Share& s : p.shares) d_.view.timeline.clear(s.node);
    for (Reservation& p : reservations) later(p);
    reservations.clear();
  }
  for (Reservation& p : reservations) {
    ++places_[place_of(p)];
    book_.enter(std::move(p));
  }
  sort_waiting();
}

bool FormerReservations::keep_there(const Reservation& p) {
  const auto slot = d_.view.queue.find(p.job);
  if (!slot) return false;
  const JobClass& c =
      d_.view.queue.job_class(d_.view.queue.line(d_.view.queue[*slot].line).class_index);
  return c.standing.generation == d_.view.eligible.generation() &&
         c.standing.verdict.reason == Reason::none &&
         d_.view.windows.speak_for(c.key.reservation) && nodes_.may_use(c, p.shares) &&
         d_.view.timeline.keep(c, p.job, p.start, p.shares);
}

void FormerReservations::look_from(Place place) {
  if (places_.empty() || !(places_.begin()->first < place)) return;
  places_.erase(places_.begin(), places_.lower_bound(place));
  book_.drop_if([&](Reservation& p) {
    if (!(place_of(p) < place)) return false;
    book_.lift(p);
    for (const Share& s : p.shares) d_.view.timeline.clear(s.node);
    book_.uncount(p);
    lowered_.insert(p.job);
    waiting_.push_back(std::move(p));
    return true;
  });
  sort_waiting();
}

void FormerReservations::keep_from(Place place) {
  while (!waiting_.empty()) {
    const Reservation& next = waiting_.back();
    if (!comes_first(next) && Place{next.priority, next.rank} < place) return;
    Reservation reservation = std::move(waiting_.back());
    waiting_.pop_back();
    keep(std::move(reservation));
  }
}

void FormerReservations::keep(Reservation reservation) {
  const auto slot = d_.view.queue.find(reservation.job);
  if (!slot) return;  // the job has started, or is gone
  // If this reservation is dropped, jobs that this plan skipped may start; look at them again.
  const bool was_cut = std::exchange(d_.cut, d_.cut || lowered_.contains(reservation.job));
  const Waiting& w = d_.view.queue[*slot];
  JobClass& c = d_.view.queue.job_class(d_.view.queue.line(w.line).class_index);
  d_.view.eligible.refresh(c, d_.view.grid);
  const bool may_run = c.standing.verdict.reason == Reason::none &&
                       d_.view.windows.speak_for(c.key.reservation) &&
                       nodes_.may_use(c, reservation.shares) &&
                       std::all_of(reservation.shares.begin(), reservation.shares.end(),
                                   [&](const Share& s) { return d_.view.grid.available(s.node); });
  if (!may_run) return;
  reservation.told = false;
  // A component that is due starts with the others, at the leader's turn; it may have started
  // already.
  if (c.key.het && d_.started_ahead.contains(w.job)) return;
  if (reservation.start <= d_.now && c.key.het) reservation.start = d_.now;
  if (reservation.start <= d_.now && !c.key.het) {
    reservation.start = d_.now;
    if (start_on_time(reservation, c, *slot)) return;
    if (!may_start_later(reservation, c)) return;
  }
  if (!book_.keep(reservation, c)) return;
  if (reservation.claimed) {
    quota_.charge(w, c, quota_.needs_of(c, reservation.shares));
    d_.order->usage_grew();
  }
  d_.cut = was_cut;
  kept_.push_back(reservation.job);
  book_.enter(std::move(reservation));
}

// Starts the job of a due reservation on its nodes, if they are free.
bool FormerReservations::start_on_time(const Reservation& reservation, JobClass& c,
                                       std::uint32_t slot) {
  const Waiting& w = d_.view.queue[slot];
  const std::uint32_t tenant = quota_.tenant_of(c);
  if (d_.started_ahead.contains(w.job) && d_.started_ahead.at(w.job) >= w.startable) return false;
  const auto neighbours = nodes_.neighbours_of(c, d_.view.queue.line(w.line).share);
  for (const Share& s : reservation.shares) {
    if (d_.view.timeline.fits(s.node, c.demand, d_.now, d_.end_of(c), d_.view.grid.free(s.node)) <
        s.tasks)
      return false;
    if (neighbours && !neighbours->allows(s.node)) return false;
    if (!has_devices(d_.view.grid, c, s.node, d_.end_of(c))) return false;
  }
  if (!quota_.has_job_left(tenant)) return false;
  if (tenant != kNoIndex && !quota_.fit(tenant, quota_.needs_of(c, reservation.shares)).fits)
    return false;
  starter_.start(c, slot, reservation.shares);
  d_.order->usage_grew();
  if (++d_.started_ahead[w.job] == w.startable)
    d_.partition(c.key.partition.value()).started.push_back(slot);
  return true;
}

// Returns whether to keep a due reservation whose job could not start: only if its nodes or quota
// are held by jobs that should have left by now. How long anything else takes is not known.
bool FormerReservations::may_start_later(Reservation& reservation, const JobClass& c) {
  if (!reservation.leaving.empty()) return true;
  // The counts do not tell whether slices can be made: the job is planned again, at its turn.
  if (!c.key.shape.gpu_slice.empty()) return false;
  const std::uint32_t tenant = quota_.tenant_of(c);
  if (!quota_.has_job_left(tenant)) return false;
  if (tenant != kNoIndex)
    for (const QuotaNeed& need : quota_.needs_of(c, reservation.shares)) {
      const auto ready = quota_.ready(tenant, need);
      if (!ready) return false;
      reservation.start = std::max(reservation.start, *ready);
    }
  return reservation.start > d_.now ||
         std::any_of(reservation.shares.begin(), reservation.shares.end(), [&](const Share& s) {
           return d_.view.timeline.fits(s.node, c.demand, d_.now, d_.end_of(c),
                                        d_.view.grid.free(s.node)) < s.tasks;
         });
}

// Updates the reservation: the jobs that still have to leave for it (without those that stay after
// all), and its place in the order, which is that of its job.
void FormerReservations::refresh(Reservation& reservation) {
  std::erase_if(reservation.leaving, [this](JobId job) {
    const auto slot = d_.view.running.find(job);
    return !slot || !d_.view.running[*slot].leaving;
  });
  auto slot = d_.view.queue.find(reservation.job);
  if (!slot) return;
  const auto class_at = [this](std::uint32_t of) -> const JobClass& {
    return d_.view.queue.job_class(d_.view.queue.line(d_.view.queue[of].line).class_index);
  };
  if (const auto& het = class_at(*slot).key.het)  // a component has its leader's place
    if (const auto leader = d_.view.queue.find(het->leader)) slot = leader;
  const Waiting& w = d_.view.queue[*slot];
  reservation.partition =
      d_.view.queue.job_class(d_.view.queue.line(w.line).class_index).key.partition;
  reservation.priority = d_.view.queue.partition(reservation.partition.value()).priority;
  reservation.rank = w.rank;
  reservation.aged = w.raised;
}

void FormerReservations::tell() {
  std::sort(kept_.begin(), kept_.end());
  for (const JobId id : kept_) {
    const auto of_job = d_.left.reservations.find(id);
    if (of_job == d_.left.reservations.end()) continue;
    for (Reservation& p : of_job->second)
      if (!std::exchange(p.told, true)) d_.expect(p);
  }
}

}  // namespace gantry::sched
