// The reservations of former plans, in the current plan.
//
// A plan that looks at everything takes all of them out and makes them again, each before the first
// job of its place in the order is looked at. A plan after changes leaves them in the timeline,
// except those on nodes that have changed. When a job's time has come it starts on its nodes, even
// before its turn. If that is not possible, or a reservation does not fit any more, it is dropped,
// and its job is planned again. In each line the first jobs have the earliest reservations
// (exchange.h).
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
    std::set<std::uint32_t> nodes;  // nodes that have changed, and those of reservations on them
    std::set<std::uint32_t> woken;  // partitions whose reservations were touched
  };
  [[nodiscard]] Resumed begin_after_changes();

  // Call it before jobs of this place are looked at: it makes the reservations of this place and of
  // higher ones again, or starts their jobs.
  void keep_from(Place place);
  // Call it before a job of this place is tried: reservations of lower places are taken out until
  // their turn has come.
  void look_from(Place place);
  // Writes the expected starts of kept reservations into the plan, unless they are there already.
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
  std::map<Place, std::uint32_t> places_;  // how many reservations of each place stayed in force
  std::set<JobId> lowered_;                // jobs whose reservations look_from() took out
  std::vector<JobId> kept_;                // jobs whose reservations keep() kept
};

}  // namespace gantry::sched
