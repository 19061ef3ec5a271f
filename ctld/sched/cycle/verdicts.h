// The reasons why classes wait: a typed reason with numbers for the head of each class, and one for
// the jobs behind it. They are asked for when the plan is made, for its closed lines; they decide
// nothing.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "ctld/sched/cycle/book.h"
#include "ctld/sched/cycle/plan_quota.h"
#include "ctld/sched/cycle/search_space.h"
#include "ctld/sched/cycle/slice_plan.h"

namespace gantry::sched {

class Verdicts {
 public:
  Verdicts(Draft& draft, const PlanQuota& quota, SearchSpace& nodes, ReservationBook& book,
           const SlicePlan& slices)
      : d_(draft), quota_(quota), nodes_(nodes), book_(book), slices_(slices) {}

  // Writes a verdict into the plan for every class with a line among these, except verdicts that
  // were told before if plans give only news (Policy::everything). `of_group` gives the verdict on
  // a heterogeneous job whose leader is the head of the turn.
  using OfGroup = std::function<Verdict(const LineTurn&)>;
  void explain(std::span<const LineTurn> closed, const OfGroup& of_group);

  // The verdict on a job behind others: how many are in front, without those that this plan starts.
  [[nodiscard]] Verdict of_waiting(const LineTurn& turn, const Waiting& w);
  // The verdict on quota: the tenant's own limit, or what is left to borrow and who has borrowed.
  [[nodiscard]] Verdict of_quota(const QuotaFit& fit);

 private:
  struct DemandNotes {  // what is known of all classes that ask the same (request_keys.h)
    std::optional<std::uint32_t> fitting;  // nodes, see count_fitting()
    std::optional<Verdict> plans;          // of_plans(); reason none: nothing is in the way
  };
  struct Row {
    std::uint32_t class_index = 0;
    bool reserved = false;  // its head has a reservation
    JobId head;
    Verdict of_head, of_rest;
    std::uint64_t changes = 0;  // JobClass::Told
  };
  void another_line(Row& row, const LineTurn& turn, const OfGroup& of_group);
  [[nodiscard]] std::uint64_t changes_of(const LineTurn& turn);
  void write(std::vector<Row>& rows);
  [[nodiscard]] Verdict of_head(const LineTurn& turn, const OfGroup& of_group);
  [[nodiscard]] std::optional<Verdict> of_blocked(const LineTurn& turn);
  [[nodiscard]] std::optional<QuotaFit> quota_everywhere(const JobClass& c) const;
  [[nodiscard]] const std::string& borrowers(const QuotaCell& cell);
  [[nodiscard]] std::optional<Verdict> of_plans(const LineTurn& turn);
  [[nodiscard]] std::uint32_t fitting(JobClass& c);
  [[nodiscard]] std::uint32_t usable(JobClass& c);
  [[nodiscard]] bool has_room(JobClass& c);
  [[nodiscard]] DemandNotes* notes(JobClass& c);  // null: no other class asks the same

  Draft& d_;
  const PlanQuota& quota_;
  SearchSpace& nodes_;
  ReservationBook& book_;
  const SlicePlan& slices_;
  std::vector<DemandNotes> notes_;  // by demand id
  std::map<std::tuple<std::uint32_t, std::uint32_t, Resource>, std::string> borrowers_;  // by cell
};

}  // namespace gantry::sched
