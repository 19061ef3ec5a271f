// The book of reservations: those in force during one plan, together with the timeline in which
// they block their nodes. former.h says how they come and go between plans, reservations.h what
// they mean.
//
// A job starts in the place of its own reservation. That does not give its partition one more
// reservation, as a plan could otherwise reserve without end. Reservations that break_in_way()
// takes out and mend() puts back count in between, too.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ctld/sched/cycle/draft.h"

namespace gantry::sched {

// True for a claim: a reservation of guaranteed quota, which others have to leave. It comes before
// all other reservations. If a borrower of a higher class came first, it would start in the place
// that the claim's victims leave, would be preempted for the claim, and so on without end.
[[nodiscard]] bool comes_first(const Reservation& p);
// The place in the order at which the reservation is kept.
[[nodiscard]] Place place_of(const Reservation& p);
// Orders by place, then by start; elements of an array by their nodes.
[[nodiscard]] bool comes_before(const Reservation& a, const Reservation& b);
[[nodiscard]] bool runs_on(const std::vector<Share>& place, std::uint32_t node);

class ReservationBook {
 public:
  explicit ReservationBook(Draft& draft) : d_(draft) {}
  ~ReservationBook();  // takes out what was held only for the plan
  ReservationBook(const ReservationBook&) = delete;
  ReservationBook& operator=(const ReservationBook&) = delete;

  // ---- reservations in force, by job; a pointer is valid until the book changes
  [[nodiscard]] const Reservations& in_force() const { return d_.left.reservations; }
  [[nodiscard]] Reservation* of(
      const LineTurn& turn);  // reservation of the turn's job or element; null: none
  [[nodiscard]] Reservation* first_of(JobId job);  // null if there is none

  // ---- coming and going; the timeline and the count change only if a comment says so
  void count(const Reservation& reservation);    // counts it against its partition's limit
  void uncount(const Reservation& reservation);  // its partition may make another instead
  void enter(Reservation reservation);  // counts the reservation, which already holds its nodes
  Reservation& add(const LineTurn& turn,
                   Reservation reservation);  // a new reservation for the turn's job; counts it
  void put_back(Reservation reservation);     // after take_first() or a break
  void use_up(const LineTurn& turn);          // its job starts: removes it
  // Removes the job's reservations; returns the first one, lifted, and drops the others (a
  // component of a heterogeneous job has no others).
  std::optional<Reservation> take_first(JobId job);
  // Removes reservations for which gone(reservation) is true; gone() may move them away.
  template <class Gone>
  void drop_if(Gone&& gone) {
    Reservations& all = d_.left.reservations;
    for (auto at = all.begin(); at != all.end();) {
      std::erase_if(at->second, [&](Reservation& p) { return gone(p); });
      at = at->second.empty() ? all.erase(at) : std::next(at);
    }
  }

  // ---- limits of a plan
  [[nodiscard]] bool may_reserve(const LineTurn& turn) const;
  // True if an earlier start should be looked for now, within the plan's limits; that look is
  // counted.
  [[nodiscard]] bool may_look_again(const Reservation& reservation);

  // ---- room in the timeline
  void lift(const Reservation& reservation);  // takes it out of the timeline
  // Puts it back into the timeline: where it was, or a little later if jobs that should have left
  // by then are late (its start changes). Returns false if it does not fit.
  [[nodiscard]] bool keep(Reservation& reservation, const JobClass& c);
  void loosened(const Reservation& reservation);  // its nodes count as changed in the next plan
  // The job starts in `place`. Other nodes that it had reserved stay taken until the plan is made.
  void hold_over(const JobClass& c, const Reservation& reservation,
                 const std::vector<Share>& place);

  // ---- a claim of guaranteed quota goes before reservations of others that are in its way on
  // these nodes in this time; but not before other claims, nor before jobs that have waited long.
  std::vector<Reservation> break_in_way(JobId but, const std::vector<Share>& shares, Instant from,
                                        Instant until);
  // Keeps reservations that still fit. The others are dropped, and the next plan plans their jobs
  // again.
  void mend(std::vector<Reservation> broken);
  // Ends the plan: all reservations stay, or only claims if not Policy::keep_reservations.
  void end_plan();

 private:
  Draft& d_;
  std::vector<std::uint32_t>
      by_partition_;       // how many reservations each partition has made or kept
  std::uint32_t all_ = 0;  // the sum of these
  std::uint32_t looked_again_ = 0;
  std::vector<Reservation> held_over_;
};

}  // namespace gantry::sched
