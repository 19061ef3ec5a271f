// The book of reservations: those in force, for the time of one plan together with the timeline in
// which they hold room. How they come and go between plans: former.h; what they mean:
// reservations.h.
//
// A job starts in the room of its own reservation; the number that its partition may have does not
// become less by that, as a plan could otherwise reserve without end. Rooms that are taken out of
// the timeline and put back, by break_in_way() and mend(), count all the while.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ctld/sched/cycle/draft.h"

namespace gantry::sched {

// A claim of guaranteed quota comes before all else. If a borrower of a higher class were asked
// first, it would start in the room that the claim's victims leave, would itself be asked to leave
// for the claim, and so on without end.
[[nodiscard]] bool comes_first(const Reservation& p);
// The place in the order at which it is kept.
[[nodiscard]] Place place_of(const Reservation& p);
// By place, then the earliest; elements of an array by where they run.
[[nodiscard]] bool comes_before(const Reservation& a, const Reservation& b);
[[nodiscard]] bool runs_on(const std::vector<Share>& place, std::uint32_t node);

class ReservationBook {
 public:
  explicit ReservationBook(Draft& draft) : d_(draft) {}
  ~ReservationBook();  // what was held over for the plan goes out of the timeline
  ReservationBook(const ReservationBook&) = delete;
  ReservationBook& operator=(const ReservationBook&) = delete;

  // ---- those in force, by job; a pointer is valid until the book changes
  [[nodiscard]] const Reservations& in_force() const { return d_.left.reservations; }
  [[nodiscard]] Reservation* of(
      const LineTurn& turn);                       // of the job or element of the turn; null: none
  [[nodiscard]] Reservation* first_of(JobId job);  // null: none

  // ---- coming and going; the timeline and the count stay as they are unless it says otherwise
  void count(const Reservation& reservation);    // it takes one of what its partition may have
  void uncount(const Reservation& reservation);  // it is given up: one more may be made
  void enter(Reservation reservation);           // counted; it holds its room already
  Reservation& add(const LineTurn& turn,
                   Reservation reservation);  // new, of the turn's job: counted
  void put_back(Reservation reservation);     // after take_first() or a break
  void use_up(const LineTurn& turn);          // its job starts
  // Lifted; others of the job, which cannot be of a heterogeneous one, are dropped.
  std::optional<Reservation> take_first(JobId job);
  // Takes out those for which gone(reservation) is true; it may move them away.
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
  // Is it time, and within the plan's means, to look for an earlier start? Counts as done if so.
  [[nodiscard]] bool may_look_again(const Reservation& reservation);

  // ---- room in the timeline
  void lift(const Reservation& reservation);  // takes its room out
  // Its room is its own again: where it was, or a little later if what should be gone by then is
  // late (its start changes). False: there is no room.
  [[nodiscard]] bool keep(Reservation& reservation, const JobClass& c);
  void loosened(const Reservation& reservation);  // for the next plan: its nodes have changed
  // The job starts in `place`. What it had reserved elsewhere stays taken until the plan is made.
  void hold_over(const JobClass& c, const Reservation& reservation,
                 const std::vector<Share>& place);

  // ---- a claim of guaranteed quota goes before those of others, where they are in its way: on
  // these nodes and in this time; not before other claims, nor before jobs that have waited long.
  std::vector<Reservation> break_in_way(JobId but, const std::vector<Share>& shares, Instant from,
                                        Instant until);
  // Where there is still room for them. The others are given up, and planned anew by the next plan.
  void mend(std::vector<Reservation> broken);
  // What stays when the plan is made: all of them, or (Policy::keep_reservations) the claims.
  void end_plan();

 private:
  Draft& d_;
  std::vector<std::uint32_t> by_partition_;  // how many each has made or kept
  std::uint32_t all_ = 0;                    // of these
  std::uint32_t looked_again_ = 0;
  std::vector<Reservation> held_over_;
};

}  // namespace gantry::sched
