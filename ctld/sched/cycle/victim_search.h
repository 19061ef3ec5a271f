// The search for victims: whether the first blocked job of a line may preempt others, and which
// ones. Nothing is changed here: the victims are a value, which room.h turns into starts,
// reservations and preemptions. The rules and costs are in preempt.h.
//
// A plan makes few searches. A search without result for one job is not repeated for others that
// ask the same (in_vain.h), and a class for which it found no victims asks again only after a
// pause.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "ctld/sched/cycle/book.h"
#include "ctld/sched/cycle/draft.h"
#include "ctld/sched/cycle/in_vain.h"
#include "ctld/sched/cycle/plan_quota.h"
#include "ctld/sched/cycle/search_space.h"
#include "ctld/sched/preempt/preempt.h"

namespace gantry::sched {

inline constexpr Duration kKillTime =
    seconds(5);  // from the end of the grace time until the nodes are free

struct Taking {  // what a job takes: the place of its victims, if it needs any
  VictimSet set;
  NodeChoice choice;
  bool guaranteed = false;  // within what its tenant, or a cohort above, is guaranteed
};

class VictimSearch {
 public:
  VictimSearch(Draft& draft, PlanQuota& quota, SearchSpace& nodes, ReservationBook& book)
      : d_(draft), quota_(quota), nodes_(nodes), book_(book) {}

  [[nodiscard]] bool may_ask(const LineTurn& turn);
  // The cheapest set of victims over the class's flavors; nullopt if there is none, or no search
  // was made.
  [[nodiscard]] std::optional<Taking> find(const LineTurn& turn);
  // served: the set was used, so the next job of the class may ask as well. failed: the class has
  // to wait.
  void served(std::uint32_t class_index) { in_vain_.erase(class_index); }
  void failed(std::uint32_t class_index);
  // Victims of the set, and jobs on its nodes that are leaving already; sorted by id.
  [[nodiscard]] std::vector<JobId> leaving_for(const VictimSet& set) const;

  // A search does not see what the plan starts. If a start makes a tenant exceed its quota, that
  // job or another of the tenant's jobs may be preempted for a job that found no victims before:
  // then the next plan follows at once and searches. Call it when the plan is made.
  [[nodiscard]] bool missed_starts();
  // True if there were more searches to make than the plan may.
  [[nodiscard]] bool cut() const { return cut_; }

 private:
  [[nodiscard]] std::optional<Asker> asker(
      const LineTurn& turn);  // nullopt: no other class has the same demand
  std::optional<Taking> search(const LineTurn& turn);
  [[nodiscard]] bool exceeds_own_limit(const JobClass& c, const VictimSet& set);
  // The resources that others have reserved for some of that time, which the job may not use. If
  // the job is within what is guaranteed, only claims and jobs that have waited long count.
  [[nodiscard]] std::vector<HeldRoom> room_of_others(JobId but, bool guaranteed, Instant from,
                                                     Instant until) const;
  [[nodiscard]] std::vector<HeldQuota> claimed_quota() const;

  Draft& d_;
  PlanQuota& quota_;
  SearchSpace& nodes_;
  ReservationBook& book_;
  std::set<std::uint32_t> in_vain_;  // classes for which a search found no victims
  InVain alike_in_vain_;
  std::uint32_t searches_ = 0;
  bool cut_ = false;
};

}  // namespace gantry::sched
