// Heterogeneous jobs in a plan: jobs with ids that follow each other (ClassKey::het), each of a
// class of its own. They start together or not at all, on nodes that no two of them share.
//
// All is done at the leader's turn: places are tried for one component after the other, those with
// the fewest nodes to choose from first, and then in other orders; only when every one has a place
// is anything taken. A group that must wait gets plans as any job, one for each component and all
// for one start. Their place in the order is the leader's, so they are kept or broken together;
// where one is lost, all are made anew. Nobody is preempted for a group.
//
// Trying orders is no complete search: a group that only a particular choice of nodes lets in may
// wait for more room than it needs.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "ctld/sched/bits.h"
#include "ctld/sched/cycle/awake.h"
#include "ctld/sched/cycle/former.h"
#include "ctld/sched/cycle/verdicts.h"

namespace gantry::sched {

struct HetSteps {  // of the plan in the making
  Draft& draft;
  PlanQuota& quota;
  SearchSpace& nodes;
  ReservationBook& book;
  FormerReservations& former;
  Starter& starter;
  Awake& awake;
};

class HetGroup {
 public:
  // The group of the job whose turn it is. If that job does not lead one, or not all jobs of the
  // group wait, the group is empty, and nothing of it can be placed or planned.
  HetGroup(const HetSteps& steps, const LineTurn& turn);

  // The group starts, and the turn moves on; false: it is blocked.
  bool place_now(LineTurn& turn);
  // All keep their reservations, or get them; false: the group has none.
  bool reserve_ahead(LineTurn& turn);
  Verdict explain(const LineTurn& turn, Verdicts& verdicts);

 private:
  struct Member {
    std::uint32_t slot = 0;  // in the queue
    JobClass* cls = nullptr;
    Slot found;  // by the last trial
    std::uint32_t flavor = 0;
    std::optional<Reservation> reservation;  // taken out by lift_reservations()
  };

  [[nodiscard]] bool may_run() const;  // some day
  [[nodiscard]] JobId job(const Member& m) const;
  [[nodiscard]] bool has_job_left(const Member& m) const;
  [[nodiscard]] bool is_shut_out(const Member& m) const;
  Bits nodes_for(const Member& m, const NodeChoice& choice) const;
  [[nodiscard]] std::optional<Neighbours> neighbours_of(const Member& m) const;
  void take(Member& m, Slot found, std::uint32_t flavor);  // for the rest of the trial
  void begin_trial();
  std::optional<Blocked> fit_now(Member& m);
  std::optional<Blocked> try_now(std::size_t order);  // nullopt: all have a place
  bool fit_ahead(Member& m, Instant from, Instant before);
  bool try_ahead(std::size_t order, Instant before);
  void start(LineTurn& turn);

  [[nodiscard]] bool all_reserved() const;
  void lift_reservations();
  void put_back_reservations();
  void drop_reservations();
  void reserve_found(const LineTurn& turn);

  Draft& d_;
  const HetSteps s_;
  std::vector<Member> members_;     // by offset; none: nothing can be done
  std::vector<std::size_t> order_;  // the fewest nodes first
  Bits used_;                       // by members that have a place in this trial
  std::vector<std::pair<std::uint32_t, QuotaNeed>> charged_;  // for them
  std::vector<std::uint32_t> tenants_;                        // theirs
};

}  // namespace gantry::sched
