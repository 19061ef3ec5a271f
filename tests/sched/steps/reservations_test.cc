// Tests reservations in a plan: those of former plans (former.h), new ones and estimates (ahead.h),
// and the rest of the contract of the book (book.h).
#include <doctest/doctest.h>

#include <vector>

#include "ctld/sched/cycle/former.h"
#include "tests/sched/steps/steps.h"

namespace gantry::sched::steps {
namespace {

constexpr Place kLast{0, std::numeric_limits<std::int32_t>::min()};

// ---- new reservations

// Node n is full until 100 * (n + 1) seconds from now.
struct Full : Steps {
  explicit Full(std::int64_t quota = 100) : Steps(red_alone(quota)) {
    for (std::uint32_t n = 0; n < 3; ++n) run(n, {0, 1, 2, 3}, kNow + seconds(100 * (n + 1)));
  }
};

TEST_CASE("the earliest start has nodes and quota, and lies before the given time or is none") {
  Full s;
  const JobId job = s.submit(4, seconds(50));
  JobClass& c = s.class_of(job);
  {
    Making m(s);
    const auto found = m.ahead.earliest(c);
    REQUIRE(found);
    CHECK(found->first.start == kNow + seconds(100));
    CHECK(found->first.shares.at(0).node == 0);
    CHECK(m.ahead.earliest(c, kNow + seconds(101)));
    CHECK_FALSE(m.ahead.earliest(c, kNow + seconds(100)));
    CHECK_FALSE(m.ahead.earliest(c, kNow));
    CHECK_FALSE(m.d.view.timeline.any_reserved());
  }
  Full poor(8);  // twelve cores are in use, so eight must be released before four more may run
  const JobId late = poor.submit(4, seconds(50));
  JobClass& of_late = poor.class_of(late);
  Making m(poor);
  CHECK(m.ahead.earliest(of_late)->first.start == kNow + seconds(200));
}

TEST_CASE("a blocked job gets one reservation, which is counted and reported") {
  Full s;
  const JobId job = s.submit(4, seconds(50)), other = s.submit(4, seconds(60));
  Making m(s);
  LineTurn turn = s.blocked(m.d, job), next = s.blocked(m.d, other);
  CHECK(m.ahead.reserve(turn));
  CHECK(turn.reserved);
  const Reservation* made = m.book.first_of(job);
  REQUIRE(made != nullptr);
  CHECK(made->start == kNow + seconds(100));
  CHECK(made->looked == kNow);
  CHECK_FALSE(made->claimed);
  CHECK(m.d.view.timeline.reserved_in(0, made->start, made->start + seconds(1), JobId{}) == job);
  REQUIRE(m.d.plan.expected.size() == 1);
  CHECK(m.d.plan.expected[0].job == job);
  CHECK(m.d.plan.expected[0].nodes == std::vector<NodeId>{NodeId{0}});
  CHECK_FALSE(m.ahead.reserve(next));  // the policy allows the partition only one reservation
  s.policy.ahead = 2;
  CHECK(m.ahead.reserve(next));
  CHECK(m.book.first_of(other)->start == kNow + seconds(150));  // after the first job's reservation
}

TEST_CASE("a plan that skips partitions makes no new reservation") {
  Full s;
  const JobId job = s.submit(4, seconds(50));
  Making m(s);
  m.d.everything = false;
  LineTurn turn = s.blocked(m.d, job);
  CHECK_FALSE(m.ahead.reserve(turn));
  CHECK(m.d.left.reservations.empty());
}

TEST_CASE("a reservation is exchanged for an earlier start, which is looked for once a second") {
  for (const Duration since : {kReplanPeriod, kReplanPeriod - microseconds(1)}) {
    Full s;
    const JobId job = s.submit(4, seconds(50));
    Making m(s);
    Reservation kept = reservation(job, kNow + seconds(300), 2);
    kept.looked = kNow - since;
    REQUIRE(m.book.keep(kept, s.class_of(job)));
    m.book.enter(kept);
    LineTurn turn = s.blocked(m.d, job);
    CHECK(m.ahead.reserve(turn));
    const bool looked = since == kReplanPeriod;
    CHECK(m.book.first_of(job)->start == kNow + seconds(looked ? 100 : 300));
    CHECK(m.d.left.memory.touched(2) == looked);  // other jobs may use what it has released
    CHECK(m.d.view.timeline.reserved_in(2, kept.start, kept.start + seconds(1), JobId{})
              .has_value() == !looked);
  }
}

TEST_CASE("estimates are reported, and reserve nothing") {
  Full s;
  const JobId first = s.submit(4, seconds(50)), second = s.submit(4, seconds(50));
  s.policy.estimates = 5;
  Making m(s);
  const LineTurn turn = s.blocked(m.d, first);
  m.ahead.estimate({&turn, 1});
  CHECK(m.d.plan.estimated);
  REQUIRE(m.d.plan.expected.size() == 2);
  CHECK(m.d.plan.expected[0].job == first);
  CHECK(m.d.plan.expected[0].start == kNow + seconds(100));
  CHECK(m.d.plan.expected[1].job == second);
  CHECK(m.d.plan.expected[1].start == kNow + seconds(150));
  CHECK_FALSE(m.d.view.timeline.reserved_in(0, kNow, kNow + seconds(1000), JobId{}));
  CHECK(m.d.left.reservations.empty());
  m.d.plan.expected.clear();
  s.policy.estimates = 1;
  m.ahead.estimate({&turn, 1});
  CHECK(m.d.plan.expected.size() == 1);
}

// ---- reservations of former plans

struct Former : Steps {
  explicit Former() : Steps(red_alone(100)) {}
  void leave(const Reservation& r) { replica.left().reservations[r.job].push_back(r); }
  template <class Check>
  void anew(Check&& check) {
    Making m(*this);
    m.begin_order();
    FormerReservations former(m.d, m.quota, m.nodes, m.book, m.starter);
    former.begin_anew();
    check(m, former);
  }
};

bool holds(Making& m, std::uint32_t node, Instant at) {
  return m.d.view.timeline.reserved_in(node, at, at + seconds(1), JobId{}).has_value();
}

TEST_CASE("a former reservation is made again when its place in the order has come") {
  Former s;
  const JobId job = s.submit(4);  // its rank is 500
  s.leave(reservation(job, kNow + seconds(60), 1));
  s.anew([&](Making& m, FormerReservations& former) {
    CHECK(m.d.left.reservations.empty());
    former.keep_from({0, 501});
    CHECK_FALSE(holds(m, 1, kNow + seconds(60)));
    former.keep_from({0, 500});
    CHECK(holds(m, 1, kNow + seconds(60)));
    REQUIRE(m.book.first_of(job) != nullptr);
    CHECK(m.book.first_of(job)->start == kNow + seconds(60));
    CHECK(m.book.first_of(job)->rank == 500);  // the rank is the present one of the queue
    CHECK(m.d.plan.expected.empty());
    former.tell();
    former.tell();
    CHECK(m.d.plan.expected.size() == 1);
  });
}

TEST_CASE("a claim of guaranteed quota is made again before all others, and charged") {
  Former s;
  const JobId job = s.submit(4);
  Reservation claim = reservation(job, kNow + seconds(60), 1);
  claim.claimed = claim.guaranteed = true;
  s.leave(claim);
  s.anew([&](Making& m, FormerReservations& former) {
    former.keep_from({9, 9000});
    CHECK(m.book.first_of(job) != nullptr);
    CHECK(s.used() == 4'000);
  });
  CHECK(s.used() == 0);
}

TEST_CASE("a job starts on its reserved nodes when its time has come") {
  Former s;
  const JobId job = s.submit(4);
  s.leave(reservation(job, kNow - seconds(1), 1));
  s.anew([&](Making& m, FormerReservations& former) {
    former.keep_from(kLast);
    REQUIRE(m.d.plan.starts.size() == 1);
    CHECK(m.d.plan.starts[0].grants.at(0).node == NodeId{1});
    CHECK(m.d.started_ahead.at(job) == 1);
    CHECK(m.d.left.reservations.empty());
  });
}

TEST_CASE("a reservation whose job, node or room is gone is dropped") {
  Former s;
  const JobId gone{1000}, down = s.submit(4), crowded = s.submit(4, seconds(200));
  s.set_available(0, false);
  s.run(1, {0}, kNow + seconds(500));
  s.leave(reservation(gone, kNow + seconds(60), 2));
  s.leave(reservation(down, kNow + seconds(60), 0));
  s.leave(reservation(crowded, kNow + seconds(60), 1));
  s.anew([&](Making& m, FormerReservations& former) {
    former.keep_from(kLast);
    CHECK(m.d.left.reservations.empty());
    CHECK(m.d.plan.starts.empty());
    CHECK_FALSE(m.d.view.timeline.any_reserved());
  });
}

TEST_CASE("a claim waits for late victims on its nodes; without victims a reservation is dropped") {
  for (const bool asked : {true, false}) {
    Former s;
    const JobId victim = s.run(1, {0, 1, 2, 3}, kNow + (asked ? seconds(7) : seconds(500)));
    s.replica.view().running.set_leaving(victim, asked);
    const JobId job = s.submit(4);
    Reservation claim = reservation(job, kNow, 1);
    claim.claimed = true;
    claim.leaving = {victim};
    s.leave(claim);
    s.anew([&](Making& m, FormerReservations& former) {
      former.keep_from(kLast);
      CHECK(m.d.plan.starts.empty());
      const Reservation* kept = m.book.first_of(job);
      CHECK((kept != nullptr) == asked);
      if (kept != nullptr) CHECK(kept->start == kNow + seconds(7));
    });
  }
}

TEST_CASE("a plan after changes keeps reservations, except on nodes that have changed") {
  Former s;
  const JobId still = s.submit(4), moved = s.submit(4, seconds(200));
  {  // the plan before
    Making m(s);
    for (Reservation r :
         {reservation(still, kNow + seconds(60), 0), reservation(moved, kNow + seconds(60), 1)}) {
      REQUIRE(m.book.keep(r, s.class_of(r.job)));
      m.book.enter(r);
    }
  }
  s.run(1, {0, 1}, kNow + seconds(500));  // this changes node 1
  Draft d(s.replica.view(), s.replica.left(), kNow, s.policy);
  d.everything = false;
  Trial trial(d);
  PlanQuota quota(d, trial);
  SearchSpace nodes(d);
  ReservationBook book(d);
  Starter starter(d, trial, quota);
  FormerReservations former(d, quota, nodes, book, starter);
  const auto resumed = former.begin_after_changes();
  CHECK(resumed.nodes == std::set<std::uint32_t>{1});
  CHECK(resumed.woken == std::set<std::uint32_t>{0});
  CHECK(d.view.timeline.reserved_in(0, kNow + seconds(60), kNow + seconds(61), JobId{}) == still);
  CHECK(book.first_of(still) != nullptr);
  CHECK_FALSE(d.view.timeline.reserved_in(1, kNow + seconds(60), kNow + seconds(61), JobId{}));
  former.keep_from(kLast);
  CHECK(book.first_of(moved) == nullptr);  // it does not fit any more
  CHECK(book.first_of(still) != nullptr);
}

TEST_CASE("reservations of lower rank are lifted before a job of higher rank is looked at") {
  for (const bool taken : {false, true}) {
    Former s;
    const JobId job = s.submit(4);
    {
      Making m(s);
      Reservation r = reservation(job, kNow + seconds(60), 0);
      r.rank = 500;
      REQUIRE(m.book.keep(r, s.class_of(job)));
      m.book.enter(r);
    }
    Draft d(s.replica.view(), s.replica.left(), kNow, s.policy);
    d.everything = false;
    Trial trial(d);
    PlanQuota quota(d, trial);
    SearchSpace nodes(d);
    ReservationBook book(d);
    Starter starter(d, trial, quota);
    FormerReservations former(d, quota, nodes, book, starter);
    (void)former.begin_after_changes();
    former.look_from({0, 500});
    CHECK(book.first_of(job) != nullptr);
    former.look_from({0, 501});
    CHECK(book.first_of(job) == nullptr);
    CHECK_FALSE(d.view.timeline.reserved_in(0, kNow + seconds(60), kNow + seconds(61), JobId{}));
    if (taken) trial.take(s.waiting(job), s.class_of(job), {{0, 1}}, std::nullopt);
    former.keep_from({0, 500});
    // If its nodes were taken meanwhile the reservation is dropped. Jobs that were skipped may then
    // start, so the plan ends.
    CHECK((book.first_of(job) == nullptr) == taken);
    CHECK(d.cut == taken);
  }
}

// ---- the book of reservations

TEST_CASE("tasks of an array have their reservations in the order of their starts") {
  Steps s;
  JobQueued array = s.job(1);
  array.startable = 3;
  const JobId job = s.submit(array);
  Making m(s);
  for (const std::int64_t at : {30, 10, 20}) {
    Reservation r = reservation(job, kNow + seconds(at), 0);
    REQUIRE(m.book.keep(r, s.class_of(job)));
    m.book.enter(r);
  }
  LineTurn turn = s.turn_of(job);
  CHECK(m.book.of(turn)->start == kNow + seconds(10));
  turn.ahead = 2;
  CHECK(m.book.of(turn)->start == kNow + seconds(30));
  turn.ahead = 3;
  CHECK(m.book.of(turn) == nullptr);
  turn.ahead = 1;
  m.book.use_up(turn);
  CHECK(m.book.of(turn)->start == kNow + seconds(30));
  CHECK(m.book.take_first(job)->start == kNow + seconds(10));
  CHECK(m.book.first_of(job) == nullptr);
}

TEST_CASE("room reserved on other nodes stays taken until the plan is made") {
  Steps s;
  const JobId job = s.submit(4);
  JobClass& c = s.class_of(job);
  Draft d = s.draft();
  Reservation two = reservation(job, kNow + seconds(50), 0);
  two.shares.push_back({1, 1});
  {
    ReservationBook book(d);
    book.hold_over(c, two, {{1, 1}});
    CHECK(d.view.timeline.reserved_in(0, two.start, two.start + seconds(1), JobId{}) == job);
    CHECK_FALSE(d.view.timeline.reserved_in(1, two.start, two.start + seconds(1), JobId{}));
    CHECK(d.again);
    CHECK(d.left.memory.touched(0));
  }
  CHECK_FALSE(d.view.timeline.reserved_in(0, two.start, two.start + seconds(1), JobId{}));
}

TEST_CASE("a plan looks for earlier starts for few reservations, and not twice within a second") {
  Steps s;
  s.policy.replans = 1;
  Making m(s);
  Reservation r = reservation(JobId{1}, kNow + seconds(50), 0);
  r.looked = kNow - kReplanPeriod + microseconds(1);
  CHECK_FALSE(m.book.may_look_again(r));
  r.looked = kNow - kReplanPeriod;
  m.d.everything = false;
  CHECK_FALSE(m.book.may_look_again(r));
  m.d.everything = true;
  m.d.plan.stats.steps = s.policy.replan_steps;
  CHECK_FALSE(m.book.may_look_again(r));
  m.d.plan.stats.steps = 0;
  CHECK(m.book.may_look_again(r));
  CHECK_FALSE(m.book.may_look_again(r));  // the plan may look for one reservation only
}

TEST_CASE("at the end of a plan its reservations stay, or only its claims, by the policy") {
  for (const bool keep : {true, false}) {
    Steps s;
    s.policy.keep_reservations = keep;
    const JobId job = s.submit(4), owner = s.submit(4);
    Making m(s);
    m.book.enter(reservation(job, kNow + seconds(50), 0));
    Reservation claim = reservation(owner, kNow + seconds(50), 1);
    claim.claimed = true;
    m.book.enter(claim);
    m.book.end_plan();
    CHECK((m.book.first_of(job) != nullptr) == keep);
    CHECK(m.book.first_of(owner) != nullptr);
  }
}

}  // namespace
}  // namespace gantry::sched::steps
