// Tests the parts that the steps of a plan share, each alone: the trial, quota, the book of
// reservations, windows, sets of nodes. Each case tests the contract in the header.
#include <doctest/doctest.h>

#include <vector>

#include "ctld/sched/cycle/exchange.h"
#include "tests/sched/steps/steps.h"

namespace gantry::sched::steps {
namespace {

TEST_CASE("a trial is undone completely") {
  Steps s;
  const JobId victim = s.run(0, {0, 1}, kNow + seconds(500));
  const JobId job = s.submit(2);
  JobClass& c = s.class_of(job);
  Draft d = s.draft();
  d.left.memory.forget_changes();
  const View& v = s.replica.view();
  {
    Trial trial(d);
    const auto grants = trial.take(s.waiting(job), c, {{0, 1}}, std::nullopt);
    CHECK(grants.at(0).cpus == std::vector<std::uint16_t>{2, 3});
    CHECK(v.grid.free(0).cpus == 0);
    CHECK(trial.taken().size() == 1);
    trial.ask_to_leave(victim, kNow + seconds(35));
    CHECK(v.running[*v.running.find(victim)].leaving);
    CHECK(v.running[*v.running.find(victim)].ends_by == kNow + seconds(35));
    trial.ask_to_leave(victim, kNow + seconds(20));
    trial.take_back_asking();
    CHECK(trial.asked().size() == 1);
  }
  CHECK(v.grid.free(0).cpus == 2);
  CHECK_FALSE(v.running[*v.running.find(victim)].leaving);
  CHECK(v.running[*v.running.find(victim)].ends_by == kNow + seconds(500));
  CHECK(s.replica.audit() == "");
  CHECK(d.left.memory.touched(0));  // the next plan looks at the nodes that changed
  d.left.memory.forget_changes();
  { (void)Trial(d).take(s.waiting(job), c, {{2, 1}}, std::nullopt); }
  // the next plan also looks at nodes on which no job was asked to leave
  CHECK(d.left.memory.touched(2));
}

TEST_CASE("a plan's charges fit until the quota is full, and are given back when the plan ends") {
  Steps s;
  const JobId runs = s.run(0, {0, 1, 2, 3}, kNow + seconds(60));
  const JobId job = s.submit(4), more = s.submit(1);
  JobClass& c = s.class_of(job);
  Draft d = s.draft();
  {
    Trial trial(d);
    PlanQuota quota(d, trial);
    CHECK(quota.tenant_of(c) == 0);
    const auto needs = quota.needs_of(c, {{1, 1}});
    CHECK(quota.fit(0, needs).fits);
    CHECK(quota.is_guaranteed(c, 0));
    quota.charge(s.waiting(job), c, needs);
    CHECK(s.used() == 8000);
    // One core more fits when the running job has ended.
    const JobClass& small = s.class_of(more);
    CHECK_FALSE(quota.fit(0, quota.needs_of(small, {{2, 1}})).fits);
    CHECK(quota.ready(0, {0, small.least}) == kNow + seconds(60));
    trial.ask_to_leave(runs, kNow + seconds(35));
    quota.ends_changed();
    CHECK(quota.ready(0, {0, small.least}) == kNow + seconds(35));
    quota.uncharge(job);
    CHECK(quota.ready(0, {0, small.least}) == kNow);
    quota.charge(s.waiting(job), c, needs);
    // The tenant may have two jobs at a time.
    CHECK(quota.has_job_left(0));
    CHECK_FALSE(quota.has_job_left(0, 1));
    quota.started(0);
    CHECK_FALSE(quota.has_job_left(0));
  }
  CHECK(s.used() == 4000);
}

TEST_CASE("a reservation holds room, counts for its partition, and gives way to claims") {
  Steps s;
  const JobId a = s.submit(4), b = s.submit(4);
  JobClass& c = s.class_of(a);
  Draft d = s.draft();
  REQUIRE(d.policy.reservations == 1);
  LineTurn turn;
  ReservationBook book(d);
  CHECK(book.may_reserve(turn));
  Reservation of_a = reservation(a, kNow + seconds(10), 0);
  CHECK(book.keep(of_a, c));
  book.enter(of_a);
  CHECK_FALSE(book.may_reserve(turn));
  CHECK(book.first_of(a)->start == kNow + seconds(10));
  // The same node cannot be reserved twice for the same time.
  Reservation of_b = reservation(b, kNow + seconds(50), 0);
  CHECK_FALSE(book.keep(of_b, c));
  // A claim breaks the reservation only if the two overlap in time and nodes.
  CHECK(book.break_in_way(b, {{0, 1}}, kNow + seconds(200), kNow + seconds(300)).empty());
  CHECK(book.break_in_way(b, {{1, 1}}, kNow, kNow + seconds(300)).empty());
  auto broken = book.break_in_way(b, {{0, 1}}, kNow, kNow + seconds(100));
  REQUIRE(broken.size() == 1);
  CHECK(book.first_of(a) == nullptr);
  CHECK_FALSE(book.may_reserve(turn));  // the broken reservation is not given up yet
  CHECK(book.keep(of_b, c));
  book.mend(std::move(broken));
  CHECK(book.first_of(a) == nullptr);
  CHECK(book.may_reserve(turn));
  CHECK(d.again);  // the next plan makes the broken reservation again
  // A reservation of a job that has waited long stays, and so does a claim.
  book.lift(of_b);
  of_b.aged = true;
  CHECK(book.keep(of_b, c));
  book.enter(of_b);
  CHECK(book.break_in_way(a, {{0, 1}}, kNow, kNow + seconds(100)).empty());
}

TEST_CASE("the first jobs of a line have the earliest reservations") {
  Steps s;
  const JobId first = s.submit(4), second = s.submit(4);
  Reservations all;
  all[second] = {reservation(second, kNow + seconds(10), 0)};
  all[first] = {reservation(first, kNow + seconds(90), 1)};
  const auto lines = lines_to_deal(s.replica.queue(), all);
  REQUIRE(lines.size() == 1);
  std::vector<Reservation> dealt{all[second][0], all[first][0]};
  std::size_t given = 0;
  deal_out(s.replica.queue(), dealt, lines, [&](Reservation&) { ++given; });
  CHECK(given == 2);
  CHECK(dealt[0].job == first);
  CHECK(dealt[1].job == second);
  all[first] = {dealt[0]};
  all[second] = {dealt[1]};
  CHECK(lines_to_deal(s.replica.queue(), all).empty());
}

TEST_CASE("windows close their nodes to all jobs but those that name them") {
  Windows windows;
  ReservationChanged night;
  night.name = "night";
  night.nodes = {NodeId{1}};
  night.from = kNow + seconds(10);
  night.until = kNow + seconds(20);
  windows.set({{"night", night}});
  CHECK(windows.in(1, kNow, kNow + seconds(11))->name == "night");
  CHECK(windows.in(1, kNow, kNow + seconds(10)) == nullptr);
  CHECK(windows.in(1, kNow + seconds(20), kNow + seconds(30)) == nullptr);
  CHECK(windows.in(0, kNow, kNow + seconds(30)) == nullptr);
  CHECK(windows.closed(1));
  CHECK_FALSE(windows.closed(0));
  CHECK(windows.next_boundary(kNow) == kNow + seconds(10));
  CHECK(windows.next_boundary(kNow + seconds(10)) == kNow + seconds(20));
  CHECK_FALSE(windows.next_boundary(kNow + seconds(20)));
  CHECK_FALSE(windows.speak_for("day"));
  CHECK(windows.speak_for("night"));
  CHECK(windows.own()->until == kNow + seconds(20));
  CHECK(windows.closed(0));  // a job that names a window runs in it only
  CHECK(windows.in(1, kNow, kNow + seconds(30)) == nullptr);
  CHECK(windows.speak_for(""));
  CHECK(windows.own() == nullptr);
}

TEST_CASE("the plan looks at the nodes of a window, and gives jobs that ask the same one request") {
  Steps s;
  const JobId a = s.submit(2, seconds(50)), b = s.submit(2, seconds(50)), c = s.submit(3);
  ReservationChanged night;
  night.name = "night";
  night.nodes = {NodeId{1}};
  night.from = kNow;
  night.until = kNow + seconds(1000);
  s.replica.apply(night);
  Draft d = s.draft();
  SearchSpace space(d);
  JobClass& of_a = s.class_of(a);
  const auto choices = d.view.eligible.flavors_of(of_a);
  CHECK(space.nodes_for(of_a, choices[0]).count() == 3);
  CHECK(space.may_use(of_a, {{0, 1}, {2, 1}}));
  CHECK_FALSE(space.may_use(of_a, {{7, 1}}));
  CHECK_FALSE(space.neighbours_of(of_a, kNoShare));
  JobClass& of_b = s.class_of(b);
  JobClass& of_c = s.class_of(c);
  CHECK(space.request_of(of_a, choices[0]) ==
        space.request_of(of_b, d.view.eligible.flavors_of(of_b)[0]));
  CHECK(space.demand_id_of(of_a) != space.demand_id_of(of_c));
  JobClass named = of_a;
  named.key.reservation = "night";
  CHECK(d.view.windows.speak_for("night"));
  CHECK(space.nodes_for(named, choices[0]).count() == 1);
}

}  // namespace
}  // namespace gantry::sched::steps
