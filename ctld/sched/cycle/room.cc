#include "ctld/sched/cycle/room.h"

#include <algorithm>
#include <utility>

#include "ctld/sched/place/place.h"

namespace gantry::sched {

bool RoomMaker::make_room(LineTurn& turn) {
  if (!d_.everything || d_.cls(turn).key.het || !victims_.may_ask(turn)) return false;
  const std::uint32_t class_index = turn.class_index;
  const auto found = victims_.find(turn);
  if (found && take(turn, *found)) {
    victims_.served(class_index);
    return true;
  }
  victims_.failed(class_index);
  return false;
}

void RoomMaker::ask_to_leave(const VictimSet& set, Instant by) {
  for (const Victim& v : set.victims) trial_.ask_to_leave(v.job, by);
  quota_.ends_changed();
}

void RoomMaker::take_back_asking(std::size_t until) {
  while (trial_.asked().size() > until) trial_.take_back_asking();
  quota_.ends_changed();
}

// Preempts the victims, and reserves for the job what they leave. Does nothing if that would delay
// a reservation that it may not delay. If the job could start as soon without victims, a job within
// its guaranteed quota reserves that start instead, and any other job reserves nothing.
bool RoomMaker::take(LineTurn& turn, const Taking& taking) {
  JobClass& c = d_.cls(turn);
  const VictimSet& set = taking.set;
  Instant free_by = set.victims.empty() ? d_.now : d_.now + set.grace + kKillTime;
  for (const Share& s : set.shares)
    for (const std::uint32_t slot : d_.view.running.on_node(s.node))
      if (const Placement& p = d_.view.running[slot]; p.leaving && p.ends_by)
        free_by = std::max({free_by, *p.ends_by, d_.now + Timeline::kOverdue});
  if (free_by == d_.now) {
    if (start_on(turn, taking)) return true;
    if (const std::uint32_t tenant = quota_.tenant_of(c); tenant != kNoIndex)
      free_by = quota_.ready(tenant, {taking.choice.flavor, c.least}).value_or(d_.now);
    if (free_by == d_.now) return false;
  }
  if (Reservation* kept = book_.of(turn); kept != nullptr && kept->start <= free_by) {
    if (!taking.guaranteed) return false;
    kept->claimed = kept->guaranteed = true;
    quota_.charge(d_.job(turn, turn.at), c, quota_.needs_of(c, kept->shares));
    d_.order->usage_grew();
    d_.tell(turn, *kept);
    return true;
  }
  const Instant before = set.victims.empty() ? free_by : free_by + microseconds(1);
  if (auto sooner = ahead_.earliest(c, before)) {
    if (!taking.guaranteed) return false;
    const Taking without{{{}, std::move(sooner->first.shares), 0, 0, {}},
                         {sooner->second, taking.choice.node_set},
                         true};
    return claim(turn, without, sooner->first.start);
  }
  return claim(turn, taking, free_by);
}

bool RoomMaker::claim(LineTurn& turn, const Taking& taking, Instant free_by) {
  JobClass& c = d_.cls(turn);
  const VictimSet& set = taking.set;
  const JobId id = turn.first.job;
  Reservation* kept = book_.of(turn);
  const std::size_t before = trial_.asked().size();
  ask_to_leave(set, free_by);
  if (kept != nullptr) book_.lift(*kept);
  std::vector<Reservation> broken;
  if (taking.guaranteed)
    broken =
        book_.break_in_way(id, set.shares, free_by, Timeline::end_of(free_by, c.key.least_limit()));
  kept = book_.of(turn);
  Reservation reservation = kept != nullptr ? *kept : Reservation{};
  reservation.job = id;
  reservation.start = reservation.leave_by = free_by;
  reservation.shares = set.shares;
  reservation.flavor = taking.choice.flavor;
  reservation.claimed = true;
  reservation.guaranteed = taking.guaranteed;
  reservation.leaving = victims_.leaving_for(set);
  if (!d_.view.timeline.keep(c, id, reservation.start, reservation.shares)) {
    take_back_asking(before);
    book_.mend(std::move(broken));
    if (kept != nullptr) (void)book_.keep(*book_.of(turn), c);
    return false;
  }
  for (const Victim& v : set.victims)
    d_.plan.preemptions.push_back({v.job, id, v.why, v.lost_work, NodeId{set.shares.front().node},
                                   &v == &set.victims.front()});
  quota_.charge(d_.job(turn, turn.at), c, quota_.needs_of(c, reservation.shares));
  d_.order->usage_grew();
  if (kept != nullptr) {
    book_.loosened(*kept);
    *kept = std::move(reservation);
  } else {
    kept = &book_.add(turn, std::move(reservation));
  }
  book_.mend(std::move(broken));
  d_.tell(turn, *kept);
  return true;
}

// Starts the job at once: no job needs to leave, only reservations blocked it.
bool RoomMaker::start_on(LineTurn& turn, const Taking& taking) {
  JobClass& c = d_.cls(turn);
  const std::vector<Share>& shares = taking.set.shares;
  const std::uint32_t tenant = quota_.tenant_of(c);
  const Reservation* kept = book_.of(turn);
  if (kept != nullptr) book_.lift(*kept);
  std::vector<Reservation> broken;
  if (taking.guaranteed) broken = book_.break_in_way(turn.first.job, shares, d_.now, d_.end_of(c));
  kept = book_.of(turn);
  const bool may = quota_.has_job_left(tenant) &&
                   (tenant == kNoIndex || quota_.fit(tenant, quota_.needs_of(c, shares)).fits) &&
                   std::all_of(shares.begin(), shares.end(), [&](const Share& s) {
                     return d_.view.grid.available(s.node) &&
                            has_devices(d_.view.grid, c, s.node, d_.end_of(c)) &&
                            d_.view.timeline.fits(s.node, c.demand, d_.now, d_.end_of(c),
                                                  d_.view.grid.free(s.node)) >= s.tasks;
                   });
  if (may) {
    if (kept != nullptr) {
      book_.loosened(*kept);
      book_.use_up(turn);
      kept = nullptr;
    }
    if (turn.at == *turn.head) {
      turn.head.reset();
      turn.blocked = 0;
    }
    starter_.start(turn, shares);
  }
  book_.mend(std::move(broken));
  if (kept != nullptr) (void)book_.keep(*book_.of(turn), c);
  return may;
}

}  // namespace gantry::sched
