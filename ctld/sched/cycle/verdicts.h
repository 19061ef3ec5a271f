// The reasons why classes wait: a typed reason with numbers for the first job of each class, and
// one for its other jobs. They are made at the end of a plan, for its closed lines; they decide
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
  // were told before if plans give only news (Policy::everything). `of_group` returns the verdict
  // on a heterogeneous job whose leader is the turn's job.
  using OfGroup = std::function<Verdict(const LineTurn&)>;
  void explain(std::span<const LineTurn> closed, const OfGroup& of_group);

  // The verdict on a job that is not the first: how many jobs precede it, without those that this
  // plan starts.
  [[nodiscard]] Verdict of_waiting(const LineTurn& turn, const Waiting& w);
  // The verdict about quota: the tenant's own limit, or what is left to borrow and which tenants
  // have borrowed.
  [[nodiscard]] Verdict of_quota(const QuotaFit& fit);

 private:
  struct DemandNotes {  // what is known of all classes with the same demand (request_keys.h)
    std::optional<std::uint32_t> fitting;  // nodes, see count_fitting()
    std::optional<Verdict> plans;  // result of of_plans(); reason none: nothing prevents the start
  };
  struct Row {
    std::uint32_t class_index = 0;
    bool reserved = false;  // its first job has a reservation
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
  [[nodiscard]] DemandNotes* notes(JobClass& c);  // null: no other class has the same demand

  Draft& d_;
  const PlanQuota& quota_;
  SearchSpace& nodes_;
  ReservationBook& book_;
  const SlicePlan& slices_;
  std::vector<DemandNotes> notes_;  // by demand id
  std::map<std::tuple<std::uint32_t, std::uint32_t, Resource>, std::string> borrowers_;  // by cell
};

}  // namespace gantry::sched
