// Heterogeneous jobs in a plan: jobs with ids that follow each other (ClassKey::het), each of a
// class of its own. They start together or not at all, on nodes that no two of them share.
//
// All of this happens at the leader's turn: places are searched for one component after the other,
// first for those with the fewest possible nodes, then in other orders; nodes are taken only when
// every component has a place. A group that must wait gets reservations like any job, one for each
// component and all with one start. Their place in the order is the leader's, so they are kept or
// dropped together; if one is lost, all are made again. No job is preempted for a group.
//
// Trying some orders is no complete search: a group that fits only with a particular choice of
// nodes may wait longer than it needs to.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "ctld/sched/bits.h"
#include "ctld/sched/cycle/awake.h"
#include "ctld/sched/cycle/former.h"
#include "ctld/sched/cycle/verdicts.h"

namespace gantry::sched {

struct HetSteps {  // the steps of the plan that a group uses
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

  // Starts the group, and the turn moves on. Returns false if the group is blocked.
  bool place_now(LineTurn& turn);
  // All components keep their reservations, or get them. Returns false if the group has none.
  bool reserve_ahead(LineTurn& turn);
  Verdict explain(const LineTurn& turn, Verdicts& verdicts);

 private:
  struct Member {
    std::uint32_t slot = 0;  // of its job in the queue
    JobClass* cls = nullptr;
    Slot found;  // place found in the last trial
    std::uint32_t flavor = 0;
    std::optional<Reservation> reservation;  // taken out by lift_reservations()
  };

  [[nodiscard]] bool may_run() const;  // every component could run if all jobs were gone
  [[nodiscard]] JobId job(const Member& m) const;
  [[nodiscard]] bool has_job_left(const Member& m) const;
  [[nodiscard]] bool is_shut_out(const Member& m) const;
  Bits nodes_for(const Member& m, const NodeChoice& choice) const;
  [[nodiscard]] std::optional<Neighbours> neighbours_of(const Member& m) const;
  void take(Member& m, Slot found, std::uint32_t flavor);  // for the rest of the trial
  void begin_trial();
  std::optional<Blocked> fit_now(Member& m);
  std::optional<Blocked> try_now(std::size_t order);  // nullopt: all components have a place
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
  std::vector<Member> members_;     // by offset of the id; empty: nothing can be done
  std::vector<std::size_t> order_;  // components with the fewest nodes first
  Bits used_;                       // nodes of components that have a place in this trial
  std::vector<std::pair<std::uint32_t, QuotaNeed>>
      charged_;                         // (node, tasks) given to these components
  std::vector<std::uint32_t> tenants_;  // quota nodes of these components
};

}  // namespace gantry::sched
