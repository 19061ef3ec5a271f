// Tests the search for victims (victim_search.h), preemption (room.h), and the start of a job in a
// plan (starter.h).
#include <doctest/doctest.h>

#include <vector>

#include "tests/sched/steps/steps.h"

namespace gantry::sched::steps {
namespace {

using Jobs = std::vector<JobId>;

// Blue has borrowed: it runs on all twelve cores, `red` of which are guaranteed to the tenant red.
struct Borrowed : Steps {
  explicit Borrowed(std::int64_t red = 8, std::int64_t blue = 4) : Steps(red_and_blue(red, blue)) {
    fill(kNow + seconds(5000), 1);
  }
};

// Makes a claim of the job on the node, for ten seconds from now.
void claim(Making& m, Steps& s, JobId job, std::uint32_t node) {
  Reservation r = reservation(job, kNow + seconds(10), node);
  r.claimed = true;
  const JobClass& c = s.class_of(job);
  m.quota.charge(s.waiting(job), c, m.quota.needs_of(c, r.shares));
  m.book.enter(r);
}

TEST_CASE("a search finds victims and changes nothing") {
  Borrowed s;
  const JobId job = s.submit(4);
  Making m(s);
  const LineTurn turn = s.blocked(m.d, job);
  REQUIRE(m.victims.may_ask(turn));
  const auto found = m.victims.find(turn);
  REQUIRE(found);
  CHECK(found->guaranteed);
  REQUIRE(found->set.victims.size() == 1);
  CHECK(found->set.victims[0].why == PreemptWhy::reclaim);
  REQUIRE(found->set.shares.size() == 1);
  CHECK(s.running_on(found->set.shares[0].node) == Jobs{found->set.victims[0].job});
  CHECK(found->set.grace == kGrace);
  CHECK(m.trial.asked().empty());
  CHECK(m.d.plan.preemptions.empty());
  CHECK(s.used(2) == 12'000);
  CHECK(s.replica.audit() == "");
}

TEST_CASE("only a blocked job without a claim may search, and only for room or quota") {
  Borrowed s;
  const JobId job = s.submit(4);
  Making m(s);
  CHECK_FALSE(m.victims.may_ask(s.turn_of(job)));  // the job is not blocked
  CHECK_FALSE(m.victims.may_ask(s.blocked(m.d, job, Blocked::By::tenant_jobs)));
  CHECK_FALSE(m.victims.may_ask(s.blocked(m.d, job, Blocked::By::reservation)));
  CHECK(m.victims.may_ask(s.blocked(m.d, job, Blocked::By::quota)));
  LineTurn own_limit = s.blocked(m.d, job, Blocked::By::quota);
  m.d.blocked.back().fit.tenant_limit = true;
  CHECK_FALSE(m.victims.may_ask(own_limit));
  const LineTurn turn = s.blocked(m.d, job);
  CHECK(m.victims.may_ask(turn));
  // A job with a claim, or with a reservation that is due before a victim could have left, can get
  // nothing better.
  Reservation of_job = reservation(job, kNow + kKillTime, 0);
  m.book.enter(of_job);
  CHECK_FALSE(m.victims.may_ask(turn));
  m.book.of(turn)->start = kNow + kKillTime + seconds(1);
  CHECK(m.victims.may_ask(turn));
  m.book.of(turn)->claimed = true;
  CHECK_FALSE(m.victims.may_ask(turn));
  m.d.left.reservations.clear();
  s.policy.preemption = false;
  CHECK_FALSE(m.victims.may_ask(turn));
}

TEST_CASE("a class for which no victim was found searches again after a pause") {
  Borrowed s;
  const JobId job = s.submit(4);
  {
    Making m(s);
    const LineTurn turn = s.blocked(m.d, job);
    REQUIRE(m.victims.find(turn));
    CHECK_FALSE(m.victims.may_ask(turn));  // the result of the search is not used yet
    m.victims.served(turn.class_index);
    CHECK(m.victims.may_ask(turn));
    REQUIRE(m.victims.find(turn));
    m.victims.failed(turn.class_index);
    CHECK(m.d.left.in_vain.at(turn.class_index) == kNow);
  }
  for (const bool cut : {false, true}) {
    s.replica.left().searches_cut = cut;
    s.now = kNow + milliseconds(900);
    CHECK_FALSE([&] {
      Making m(s);
      return m.victims.may_ask(s.blocked(m.d, job));
    }());
    // after Policy::search_pause; later if the plan had too many searches to make
    s.now = kNow + seconds(1);
    CHECK([&] {
      Making m(s);
      return m.victims.may_ask(s.blocked(m.d, job));
    }() == !cut);
    s.now = kNow + seconds(5);
    CHECK([&] {
      Making m(s);
      return m.victims.may_ask(s.blocked(m.d, job));
    }());
  }
}

TEST_CASE("no search is made for a job without a right to room, and a plan makes few searches") {
  Borrowed s;
  // a job of blue, which uses more than its own quota
  const JobId large = s.submit(4, seconds(100), 1);
  const JobId first = s.submit(4, seconds(100)), second = s.submit(3, seconds(100));
  s.policy.searches = 1;
  Making m(s);
  CHECK_FALSE(m.victims.find(s.blocked(m.d, large)));
  CHECK(m.d.plan.stats.attempts == 0);
  CHECK(m.victims.find(s.blocked(m.d, first)));
  CHECK(m.d.plan.stats.attempts > 0);
  CHECK_FALSE(m.victims.cut());
  CHECK_FALSE(m.victims.find(s.blocked(m.d, second)));
  CHECK(m.victims.cut());
}

TEST_CASE("a search in vain counts for all jobs that ask alike and end no sooner") {
  Borrowed s;
  const JobId first = s.submit(4, seconds(100)), longer = s.submit(4, seconds(200)),
              shorter = s.submit(4, seconds(50));
  Making m(s);
  for (std::uint32_t n = 0; n < 3; ++n) claim(m, s, s.submit(4, seconds(9000), 1), n);
  const auto attempts = [&] { return m.d.plan.stats.attempts; };
  CHECK_FALSE(m.victims.find(s.blocked(m.d, first)));
  const auto once = attempts();
  CHECK(once > 0);
  CHECK_FALSE(m.victims.find(s.blocked(m.d, longer)));
  CHECK(attempts() == once);
  CHECK_FALSE(m.victims.may_ask(s.blocked(m.d, longer)));
  CHECK_FALSE(m.victims.find(s.blocked(m.d, shorter)));
  CHECK(attempts() > once);
}

TEST_CASE("nodes that other jobs have claimed, or have waited long for, are not taken") {
  for (const bool claimed : {true, false}) {
    Borrowed s(12, 0);
    const JobId job = s.submit(4), other = s.submit(4, seconds(9000), claimed ? 0 : 1);
    Making m(s);
    for (const std::uint32_t n : {0u, 1u}) {
      if (claimed) {
        claim(m, s, other, n);
        m.trial.ask_to_leave(s.running_on(n).at(0), kNow + seconds(10));
        continue;
      }
      (void)s.class_of(other);
      Reservation r = reservation(other, kNow + seconds(10), n);
      r.aged = true;
      m.book.enter(r);
    }
    const auto found = m.victims.find(s.blocked(m.d, job));
    REQUIRE(found);
    CHECK(found->set.shares[0].node == 2);
    CHECK(m.victims.leaving_for(found->set) == s.running_on(2));
    // A job that was preempted earlier counts among those that leave.
    if (!claimed) m.trial.ask_to_leave(s.running_on(1).at(0), kNow + seconds(5));
    VictimSet both = found->set;
    both.shares.push_back({1, 1});
    CHECK(m.victims.leaving_for(both) == Jobs{s.running_on(1)[0], s.running_on(2)[0]});
  }
}

TEST_CASE("after a start that a search could not see, the next plan searches again") {
  Borrowed s;
  s.end(s.running_on(0).at(0), 0);
  const JobId red = s.submit(4), blue = s.submit(4, seconds(100), 1);
  Making m(s);
  const LineTurn turn = s.blocked(m.d, red);
  REQUIRE(m.victims.find(turn));
  CHECK_FALSE(m.victims.missed_starts());  // no job has started
  m.starter.start(s.class_of(blue), *s.replica.queue().find(blue), {{0, 1}});
  CHECK(m.victims.missed_starts());
  m.victims.served(turn.class_index);
  CHECK_FALSE(m.victims.missed_starts());
}

// ---- making room

struct Claiming : Borrowed {
  // Blocks the job, lets it ask for room, and calls `check` on the plan.
  template <class Check>
  bool make(JobId job, Check&& check, bool everything = true) {
    Making m(*this);
    m.d.everything = everything;
    m.begin_order();
    RoomMaker room(m.d, m.trial, m.quota, m.book, m.ahead, m.starter, m.victims);
    LineTurn turn = blocked(m.d, job);
    const bool made = room.make_room(turn);
    check(m, turn);
    return made;
  }
};

TEST_CASE("a claim reserves the victims' nodes from the time they have left, and is charged") {
  Claiming s;
  const JobId job = s.submit(4);
  const Instant by = kNow + kGrace + kKillTime;
  CHECK(s.make(job, [&](Making& m, const LineTurn& turn) {
    REQUIRE(m.d.plan.preemptions.size() == 1);
    const Preempt& p = m.d.plan.preemptions[0];
    CHECK(p.for_job == job);
    CHECK(p.why == PreemptWhy::reclaim);
    const Reservation* claim = m.book.first_of(job);
    REQUIRE(claim != nullptr);
    CHECK(claim->claimed);
    CHECK(claim->guaranteed);
    CHECK(claim->start == by);
    CHECK(claim->leave_by == by);
    CHECK(claim->leaving == Jobs{p.victim});
    CHECK(s.running_on(claim->shares.at(0).node) == Jobs{p.victim});
    CHECK(m.d.view.timeline.reserved_in(claim->shares[0].node, by, by + seconds(1), JobId{}) ==
          job);
    CHECK(m.trial.asked().size() == 1);
    CHECK(s.used(1) == 4'000);
    CHECK(m.d.plan.starts.empty());
    REQUIRE(m.d.plan.expected.size() == 1);
    CHECK(m.d.plan.expected[0].start == by);
    CHECK(turn.reserved);
  }));
  CHECK(s.used(1) == 0);
  CHECK(s.replica.audit() == "");
}

TEST_CASE(
    "a tenant claims no more than its guaranteed quota, and a plan after changes claims nothing") {
  Claiming s;
  const JobId job = s.submit(4);
  CHECK_FALSE(s.make(
      job,
      [&](Making& m, const LineTurn&) {
        CHECK(m.trial.asked().empty());
        CHECK(m.d.left.reservations.empty());
      },
      false));
  Claiming full;
  full.end(full.running_on(0).at(0), 0);
  full.end(full.running_on(1).at(0), 1);
  full.run(0, {0, 1, 2, 3}, kNow + seconds(5000));
  full.run(1, {0, 1, 2, 3}, kNow + seconds(5000));
  const JobId third = full.submit(4);
  CHECK_FALSE(full.make(third, [&](Making& m, const LineTurn&) {
    CHECK(m.trial.asked().empty());
    CHECK(m.d.plan.preemptions.empty());
  }));
}

TEST_CASE("no victim is taken if room comes as soon without one; that room is claimed") {
  Claiming s;
  s.end(s.running_on(2).at(0), 2);
  s.run(2, {0, 1, 2, 3}, kNow + seconds(20), 1);  // it ends within the grace time
  const JobId job = s.submit(4);
  CHECK(s.make(job, [&](Making& m, const LineTurn&) {
    CHECK(m.trial.asked().empty());
    CHECK(m.d.plan.preemptions.empty());
    const Reservation* claim = m.book.first_of(job);
    REQUIRE(claim != nullptr);
    CHECK(claim->claimed);
    CHECK(claim->start == kNow + seconds(20));
    CHECK(claim->shares.at(0).node == 2);
    CHECK(claim->leaving.empty());
  }));
}

TEST_CASE("a borrower's reservation is broken if it alone is in the way of a claim") {
  for (const bool aged : {false, true}) {
    Claiming s;
    s.end(s.running_on(2).at(0), 2);
    const JobId job = s.submit(4), borrower = s.submit(4, seconds(9000), 1);
    (void)s.class_of(borrower);
    Making m(s);
    m.begin_order();
    Reservation of_borrower = reservation(borrower, kNow + seconds(50), 2);
    of_borrower.aged = aged;
    of_borrower.partition = PartitionId{1};
    REQUIRE(m.book.keep(of_borrower, s.class_of(borrower)));
    m.book.enter(of_borrower);
    RoomMaker room(m.d, m.trial, m.quota, m.book, m.ahead, m.starter, m.victims);
    // This is the order's own turn, because the job is to start in it.
    std::optional<LineTurn> turn = m.d.order->next();
    while (turn && turn->first.job != job) {
      m.d.order->done(*turn);
      turn = m.d.order->next();
    }
    REQUIRE(turn);
    turn->at = s.replica.queue().line(turn->line).jobs.begin();
    turn->head = turn->at;
    turn->head_job = turn->first;
    m.d.block(*turn, {});
    CHECK(room.make_room(*turn));
    CHECK((m.d.plan.starts.size() == 1) == !aged);
    CHECK((m.book.first_of(borrower) == nullptr) == !aged);
    CHECK(m.d.plan.preemptions.size() == (aged ? 1u : 0u));
    CHECK(m.d.again == !aged);  // the next plan makes the broken reservation again
  }
}

TEST_CASE("a started job is in the plan, holds its node and is charged") {
  Steps s;
  const JobId job = s.submit(3);
  JobClass& c = s.class_of(job);
  {
    Making m(s);
    m.starter.start(c, *s.replica.queue().find(job), {{1, 1}});
    REQUIRE(m.d.plan.starts.size() == 1);
    CHECK(m.d.plan.starts[0].job == job);
    REQUIRE(m.d.plan.starts[0].grants.size() == 1);
    CHECK(m.d.plan.starts[0].grants[0].node == NodeId{1});
    CHECK(m.d.plan.starts[0].grants[0].cpus == std::vector<std::uint16_t>{0, 1, 2});
    CHECK(s.replica.grid().free(1).cpus == 1);
    CHECK(s.used() == 3'000);
    CHECK(m.quota.jobs_of(0) == 1);
    CHECK(m.d.partition(0).starts == 1);
    CHECK(m.d.plan.stats.backfilled == 0);
    m.d.partition(0).blocked = true;  // every start from now on goes before a blocked job
    m.starter.start(c, *s.replica.queue().find(job), {{2, 1}});
    CHECK(m.d.plan.stats.backfilled == 1);
  }
  CHECK(s.replica.grid().free(1).cpus == 4);
  CHECK(s.used() == 0);
}

TEST_CASE("a turn moves on when its job has started, task by task for an array") {
  Steps s;
  JobQueued array = s.job(1);
  array.startable = 2;
  const JobId job = s.submit(array), next = s.submit(1);
  Making m(s);
  m.begin_order();
  auto turn = m.d.order->next();
  REQUIRE(turn);
  turn->at = s.replica.queue().line(turn->line).jobs.begin();
  CHECK(turn->first.job == job);
  m.starter.start(*turn, {{0, 1}});
  CHECK(turn->first.job == job);
  CHECK(turn->started == 1);
  CHECK(m.d.partition(0).started.empty());  // not all tasks of the array have started
  m.starter.start(*turn, {{0, 1}});
  CHECK(turn->first.job == next);
  CHECK(turn->started == 0);
  CHECK(m.d.partition(0).started.size() == 1);
  CHECK(m.d.plan.starts.size() == 2);
}

}  // namespace
}  // namespace gantry::sched::steps
