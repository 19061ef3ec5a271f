// What a plan does with memory.h and request_keys.h: which partitions and lines it skips, what
// wakes them, and what it notes for the next plan.
//
// A partition sleeps if the last plan has looked at all of it and none of its jobs can start. It is
// skipped unless it was woken, or jobs of one of its lines may have become able to start.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "ctld/sched/cycle/book.h"
#include "ctld/sched/cycle/draft.h"
#include "ctld/sched/cycle/plan_quota.h"
#include "ctld/sched/cycle/search_space.h"

namespace gantry::sched {

class Awake {
 public:
  Awake(Draft& draft, PlanQuota& quota, SearchSpace& nodes, const ReservationBook& book)
      : d_(draft), quota_(quota), nodes_(nodes), book_(book) {}

  // Begins a plan after changes. `woken` partitions are looked at, whatever they wait for. On these
  // `nodes` resources may have become free. `touched` means that some node has changed, which wakes
  // restless partitions (memory.h). Returns the partitions that are awake, in the queue's order.
  std::vector<std::uint32_t> begin(std::set<std::uint32_t> woken,
                                   const std::set<std::uint32_t>& nodes, bool touched);
  // Tells the order, in such a plan, what to skip.
  [[nodiscard]] Order::Passing passing();
  // A job starts early on nodes that it had reserved, and so will leave them sooner. That may make
  // room for jobs that this plan has skipped. If so, the plan ends, and the next one is made.
  void wake_behind(const Reservation& reservation, const std::vector<Share>& place);
  // Call it when the plan is made: notes for the next plan the closed lines and all others.
  void remember(std::span<const LineTurn> closed);

 private:
  // Resources became free on the node. Returns true if a request that has failed could be met there
  // now.
  bool reopen(std::uint32_t node);
  [[nodiscard]] bool could(const RequestKey& request, std::uint32_t node) const;
  [[nodiscard]] bool could_start(std::uint32_t partition, std::uint32_t request, std::int32_t rank);
  [[nodiscard]] bool could_start(std::uint32_t partition);  // any of its requests
  bool pass_over(std::uint32_t partition);
  void note_wait(const LineTurn& turn);

  Draft& d_;
  PlanQuota& quota_;
  SearchSpace& nodes_;
  const ReservationBook& book_;
  std::set<std::uint32_t> woken_;  // partitions that are awake as a whole
};

}  // namespace gantry::sched
