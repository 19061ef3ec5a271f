// Reservations that former plans have made, in this one.
//
// A plan that looks at everything takes all of them out and makes them again, each before the first
// job of its place in the order is looked at. A plan after changes leaves them in the timeline, but
// for those on nodes that have changed. When a job's time has come it starts on its nodes, whatever
// its turn; where that is not possible, or a reservation has no room any more, it is dropped, and
// its job is planned anew. The jobs of one line have the earliest first (exchange.h).
#pragma once

#include <map>
#include <set>
#include <vector>

#include "ctld/sched/cycle/book.h"
#include "ctld/sched/cycle/plan_quota.h"
#include "ctld/sched/cycle/search_space.h"
#include "ctld/sched/cycle/starter.h"

namespace gantry::sched {

class FormerReservations {
 public:
  FormerReservations(Draft& draft, PlanQuota& quota, SearchSpace& nodes, ReservationBook& book,
                     Starter& starter)
      : d_(draft), quota_(quota), nodes_(nodes), book_(book), starter_(starter) {}

  void begin_anew();
  struct Resumed {
    std::set<std::uint32_t> nodes;  // those that have changed, and of reservations on them
    std::set<std::uint32_t> woken;  // partitions whose reservations were touched
  };
  [[nodiscard]] Resumed begin_after_changes();

  // Before jobs of this place are looked at: makes those of it and of higher places again, or
  // starts their jobs.
  void keep_from(Place place);
  // A job of this place looks for room: reservations of lower ones get out of its way until their
  // turn has come.
  void look_from(Place place);
  // The plan says when the jobs of those that it has made again will start, if it has not yet.
  void tell();

 private:
  std::vector<Reservation> take_changed(std::set<std::uint32_t>& nodes);
  void keep_where_they_are(std::vector<Reservation> reservations);
  [[nodiscard]] bool keep_there(const Reservation& reservation);
  void sort_waiting();
  void keep(Reservation reservation);
  bool start_on_time(const Reservation& reservation, JobClass& c, std::uint32_t slot);
  bool may_start_later(Reservation& reservation, const JobClass& c);
  void refresh(Reservation& reservation);

  Draft& d_;
  PlanQuota& quota_;
  SearchSpace& nodes_;
  ReservationBook& book_;
  Starter& starter_;
  std::vector<Reservation> waiting_;       // not looked at yet: the last one comes first
  std::map<Place, std::uint32_t> places_;  // of those in force that are left as they were
  std::set<JobId> lowered_;                // by look_from()
  std::vector<JobId> kept_;                // by keep()
};

}  // namespace gantry::sched
