// The search for victims: may the first blocked job of a line ask others to leave, and who would
// go. Nothing happens to anybody here: who must go is a value, which room.h turns into starts,
// claims and requests to leave. The rules and costs: preempt.h.
//
// A plan makes few searches. What was in vain for one job is for all that ask the same (in_vain.h),
// and a class for which there was nobody asks again only after a pause.
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

inline constexpr Duration kKillTime = seconds(5);  // from the end of the grace until nodes are free

struct Taking {  // what a job takes: the room of its victims, if it needs any
  VictimSet set;
  NodeChoice choice;
  bool guaranteed = false;  // it is within what its tenant, or a cohort above, is guaranteed
};

class VictimSearch {
 public:
  VictimSearch(Draft& draft, PlanQuota& quota, SearchSpace& nodes, ReservationBook& book)
      : d_(draft), quota_(quota), nodes_(nodes), book_(book) {}

  [[nodiscard]] bool may_ask(const LineTurn& turn);
  // The cheapest set over the class's flavors; nullopt: there is none, or it was not looked for.
  [[nodiscard]] std::optional<Taking> find(const LineTurn& turn);
  // What was found has served: the next one of the class may ask as well. Otherwise (failed) its
  // class has to wait.
  void served(std::uint32_t class_index) { in_vain_.erase(class_index); }
  void failed(std::uint32_t class_index);
  // Victims of the set, and jobs on its nodes that were asked before; by id.
  [[nodiscard]] std::vector<JobId> leaving_for(const VictimSet& set) const;

  // A search does not see what the plan starts. Where a start makes a tenant exceed its quota, that
  // job or another of the tenant's may have to leave for a claim for which there was nobody: the
  // next plan follows at once and looks. Asked when the plan is made.
  [[nodiscard]] bool missed_starts();
  // There were more searches to make than the plan may.
  [[nodiscard]] bool cut() const { return cut_; }

 private:
  [[nodiscard]] std::optional<Asker> asker(
      const LineTurn& turn);  // nullopt: nobody else asks the same
  std::optional<Taking> search(const LineTurn& turn);
  [[nodiscard]] bool exceeds_own_limit(const JobClass& c, const VictimSet& set);
  // What others have reserved for some of that time, of which the job may use nothing; if it is
  // within what is guaranteed, only claims, and what jobs have that have waited long.
  [[nodiscard]] std::vector<HeldRoom> room_of_others(JobId but, bool guaranteed, Instant from,
                                                     Instant until) const;
  [[nodiscard]] std::vector<HeldQuota> claimed_quota() const;

  Draft& d_;
  PlanQuota& quota_;
  SearchSpace& nodes_;
  ReservationBook& book_;
  std::set<std::uint32_t> in_vain_;  // classes: searched for, and nobody was found
  InVain alike_in_vain_;
  std::uint32_t searches_ = 0;
  bool cut_ = false;
};

}  // namespace gantry::sched
