// Tests the reason for which each class waits (verdicts.h), and jobs that start together or not at
// all (het.h).
#include <doctest/doctest.h>

#include <optional>
#include <vector>

#include "ctld/sched/cycle/het.h"
#include "tests/sched/steps/steps.h"

namespace gantry::sched::steps {
namespace {

// Returns the verdicts that the plan gives on these lines, which it has closed.
std::vector<ClassVerdict> told(Making& m, const std::vector<LineTurn>& closed) {
  m.d.plan.verdicts.clear();
  Verdicts verdicts(m.d, m.quota, m.nodes, m.book, m.slices);
  verdicts.explain(closed, [](const LineTurn&) {
    return Verdict{Reason::priority, 0, 0, "group"};
  });
  return m.d.plan.verdicts;
}

TEST_CASE("the first job of a class waits for nodes, the others for jobs in front of them") {
  Steps s(red_alone(100));
  s.run(0, {0, 1, 2, 3}, kNow + seconds(500));
  s.run(1, {0, 1}, kNow + seconds(500));
  JobQueued two = s.job(2);
  two.key.shape.min_nodes = two.key.shape.max_nodes = two.key.shape.tasks = 3;
  const JobId head = s.submit(two);
  two.job = JobId{++s.last};
  s.submit(two);
  Making m(s);
  const auto verdicts = told(m, {s.blocked(m.d, head)});
  REQUIRE(verdicts.size() == 1);
  CHECK(verdicts[0].head == head);
  // two of three nodes are free
  CHECK(verdicts[0].of_head == Verdict{Reason::resources, 2, 3, ""});
  CHECK(verdicts[0].of_rest == Verdict{Reason::priority, 1, 0, ""});
}

TEST_CASE("a verdict is not repeated unless plans report everything") {
  Steps s(red_alone(100));
  s.fill(kNow + seconds(500));
  JobQueued two = s.job(4);
  two.key.shape.min_nodes = two.key.shape.max_nodes = two.key.shape.tasks = 2;
  const JobId head = s.submit(two);
  const auto once = [&] {
    Making m(s);
    return told(m, {s.blocked(m.d, head)}).size();
  };
  CHECK(once() == 1);
  CHECK(once() == 0);
  s.end(s.running_on(0).at(0), 0);
  const JobId small = s.run(0, {0}, kNow + seconds(500));
  CHECK(once() == 0);  // still no node is free
  s.end(small, 0);
  CHECK(once() == 1);  // now one of two nodes is free
  CHECK(once() == 0);
  s.policy.everything = {};
  CHECK(once() == 1);
  CHECK(once() == 1);
  s.policy.verdicts = false;
  CHECK(once() == 0);
}

TEST_CASE("a verdict names what blocks the first job") {
  Steps s(red_and_blue(8, 4));
  s.fill(kNow + seconds(500), 1);
  const JobId head = s.submit(4);
  s.policy.everything = {};
  Making m(s);
  QuotaFit fit;
  fit.cell = QuotaCell{1, 0, Resource::cpu};
  fit.would_use = 9'000;
  fit.limit = 8'000;
  fit.tenant_limit = true;
  const auto verdict = [&](Blocked::By by) {
    const LineTurn turn = s.blocked(m.d, head, by);
    m.d.blocked.back().fit = fit;
    return told(m, {turn}).at(0).of_head;
  };
  CHECK(verdict(Blocked::By::quota) == Verdict{Reason::tenant_quota, 9'000, 8'000, "cpu"});
  // The verdict on a cohort names what the job asks for, what is left, and who has borrowed the
  // rest.
  fit = {};
  fit.cell = QuotaCell{0, 0, Resource::cpu};
  fit.would_use = 16'000;
  fit.limit = 12'000;
  const Verdict of_cohort = verdict(Blocked::By::quota);
  CHECK(of_cohort.reason == Reason::cohort_quota);
  CHECK(of_cohort.a == 4'000);
  CHECK(of_cohort.b == 0);
  CHECK(of_cohort.subject == "cpu: blue borrows 8 cores");
  CHECK(verdict(Blocked::By::reservation).reason == Reason::reservation);
}

TEST_CASE("a tenant with its maximum number of jobs is told that number") {
  Steps s;
  s.run(0, {0}, kNow + seconds(500));
  s.run(0, {1}, kNow + seconds(500));
  const JobId head = s.submit(1);
  Making m(s);
  CHECK(told(m, {s.blocked(m.d, head, Blocked::By::tenant_jobs)}).at(0).of_head ==
        Verdict{Reason::tenant_jobs, 2, 2, ""});
}

TEST_CASE("a verdict names the reservation, the victims or the window that is in the way") {
  Steps s(red_alone(100));
  s.run(1, {0, 1, 2, 3}, kNow + seconds(500));
  s.run(2, {0, 1, 2, 3}, kNow + seconds(500));
  const JobId other = s.submit(4, seconds(60)), head = s.submit(4, seconds(100));
  s.policy.everything = {};
  {
    Making m(s);
    Reservation r = reservation(other, kNow + seconds(50), 0);
    REQUIRE(m.book.keep(r, s.class_of(other)));
    m.book.enter(r);
    CHECK(told(m, {s.blocked(m.d, head)}).at(0).of_head ==
          Verdict{Reason::planned, 0, 0, std::to_string(other.value())});
    Reservation claim = reservation(head, kNow + seconds(35), 1);
    claim.leaving = {JobId{1}};
    claim.leave_by = kNow + seconds(35);
    m.book.enter(claim);
    CHECK(told(m, {s.blocked(m.d, head)}).at(0).of_head ==
          Verdict{Reason::reclaiming, 1, (kNow + seconds(35)).us, ""});
    m.d.left.reservations.clear();
  }
  ReservationChanged night;
  night.name = "night";
  night.nodes = {NodeId{0}};
  night.from = kNow + seconds(10);
  night.until = kNow + seconds(20);
  s.replica.apply(night);
  Making m(s);
  CHECK(told(m, {s.blocked(m.d, head)}).at(0).of_head ==
        Verdict{Reason::maintenance, night.from.us, 0, "night"});
}

TEST_CASE(
    "a class of several lines has one verdict, that of a reserved first job if there is one") {
  Steps s(red_alone(100));
  s.fill(kNow + seconds(500));
  s.replica.apply(ShareChanged{ShareId{0}, std::nullopt, 1, {}});
  for (const std::uint32_t user : {1u, 2u})
    s.replica.apply(ShareChanged{ShareId{user}, ShareId{0}, 1, {}});
  std::vector<JobId> heads;
  for (const std::uint32_t user : {1u, 2u}) {
    JobQueued job = s.job(4);
    job.share = ShareId{user};
    heads.push_back(s.submit(job));
  }
  Making m(s);
  LineTurn first = s.blocked(m.d, heads[0]), second = s.blocked(m.d, heads[1]);
  REQUIRE(first.class_index == second.class_index);
  second.reserved = true;
  const auto verdicts = told(m, {first, second});
  REQUIRE(verdicts.size() == 1);
  CHECK(verdicts[0].head == heads[1]);
}

// ---- jobs that start together

struct Group : Steps {
  Group() : Steps(red_and_blue(100, 4)) {
    for (std::uint32_t i = 0; i < 2; ++i) {
      JobQueued part = job(4, seconds(100));
      if (i == 0) leader = part.job;
      part.key.het = HetPart{leader, i, 2};
      submit(part);
    }
  }
  template <class Check>
  void ask(Check&& check) {
    Making m(*this);
    m.begin_order();
    FormerReservations former(m.d, m.quota, m.nodes, m.book, m.starter);
    Awake awake(m.d, m.quota, m.nodes, m.book);
    const HetSteps steps{m.d, m.quota, m.nodes, m.book, former, m.starter, awake};
    std::optional<LineTurn> turn = m.d.order->next();
    REQUIRE(turn);
    turn->at = replica.queue().line(turn->line).jobs.begin();
    class_of(turn->first.job);
    REQUIRE(turn->first.job == leader);
    HetGroup group(steps, *turn);
    check(m, group, *turn);
  }
  JobId leader;
  JobId second() const { return JobId{leader.value() + 1}; }
};

TEST_CASE("a group starts as a whole, each component on its own nodes") {
  Group s;
  s.run(0, {0}, kNow + seconds(500));
  s.ask([&](Making& m, HetGroup& group, LineTurn& turn) {
    CHECK(group.place_now(turn));
    REQUIRE(m.d.plan.starts.size() == 2);
    CHECK(m.d.plan.starts[0].grants.at(0).node != m.d.plan.starts[1].grants.at(0).node);
    CHECK(s.used(1) == 9'000);
  });
  CHECK(s.used(1) == 1'000);
}

TEST_CASE("if one component of a group finds no place, none starts and nothing is taken") {
  Group s;
  s.run(0, {0}, kNow + seconds(500));
  s.run(1, {0}, kNow + seconds(300));
  s.ask([&](Making& m, HetGroup& group, LineTurn& turn) {
    CHECK_FALSE(group.place_now(turn));
    CHECK(m.d.plan.starts.empty());
    CHECK(m.trial.taken().empty());
    CHECK(m.quota.charged().empty());
    CHECK(turn.head);
    REQUIRE(m.d.why(turn) != nullptr);
    CHECK(m.d.why(turn)->by == Blocked::By::room);
    // All components get a reservation for the same start, when the second node is free.
    CHECK(group.reserve_ahead(turn));
    const Reservation* of_leader = m.book.first_of(s.leader);
    const Reservation* of_second = m.book.first_of(s.second());
    REQUIRE(of_leader != nullptr);
    REQUIRE(of_second != nullptr);
    CHECK(of_leader->start == kNow + seconds(300));
    CHECK(of_second->start == of_leader->start);
    CHECK(of_second->shares.at(0).node != of_leader->shares.at(0).node);
    CHECK(s.used(1) == 2'000);
  });
}

TEST_CASE("a group with a component that is not queued is not placed, and has a reason") {
  Group s;
  s.replica.apply(JobUnqueued{s.second()});
  s.ask([&](Making& m, HetGroup& group, LineTurn& turn) {
    CHECK_FALSE(group.place_now(turn));
    CHECK(m.d.plan.starts.empty());
    CHECK_FALSE(group.reserve_ahead(turn));
    Verdicts verdicts(m.d, m.quota, m.nodes, m.book, m.slices);
    turn.head_job = turn.first;
    CHECK(group.explain(turn, verdicts).reason == Reason::priority);
  });
}

}  // namespace
}  // namespace gantry::sched::steps
