// Tests the memory of what a plan may skip: what plans leave for the next one (memory.h), which
// requests have failed (request_keys.h, in_vain.h), and which partitions are skipped because of
// that (awake.h).
#include <doctest/doctest.h>

#include <vector>

#include "ctld/sched/cycle/awake.h"
#include "tests/sched/steps/steps.h"

namespace gantry::sched::steps {
namespace {

Policy with_memory() {
  Policy policy;
  policy.keep_reservations = true;
  policy.everything = seconds(1);
  return policy;
}

TEST_CASE("partitions may be skipped after a full look, until that look is one period old") {
  const Policy policy = with_memory();
  const Instant half = kNow + milliseconds(500);
  Memory memory;
  CHECK_FALSE(memory.may_pass_over(kNow, policy, std::nullopt));  // no plan has looked yet
  memory.planned(true, false, kNow, policy);
  CHECK(memory.may_pass_over(half, policy, std::nullopt));
  CHECK_FALSE(memory.may_pass_over(kNow + seconds(1), policy, std::nullopt));
  CHECK_FALSE(memory.may_pass_over(kNow - microseconds(1), policy, std::nullopt));
  // A plan after changes does not count as a new full look.
  memory.planned(false, false, half, policy);
  CHECK_FALSE(memory.may_pass_over(kNow + seconds(1), policy, std::nullopt));
  // A plan that was cut short, or forget(), ends the memory.
  memory.planned(false, true, half, policy);
  CHECK_FALSE(memory.may_pass_over(half, policy, std::nullopt));
  memory.planned(true, false, kNow, policy);
  memory.forget();
  CHECK_FALSE(memory.may_pass_over(half, policy, std::nullopt));
}

TEST_CASE("partitions may be skipped only under the policy and reservations of the last plan") {
  const Policy policy = with_memory();
  Memory memory;
  memory.planned(true, false, kNow, policy);
  REQUIRE(memory.may_pass_over(kNow, policy, std::nullopt));
  Policy other = policy;
  other.depth = 7;
  CHECK_FALSE(memory.may_pass_over(kNow, other, std::nullopt));
  other = policy;
  other.estimates = 1;
  CHECK_FALSE(memory.may_pass_over(kNow, other, std::nullopt));
  other = policy;
  other.keep_reservations = false;
  memory.planned(true, false, kNow, other);
  CHECK_FALSE(memory.may_pass_over(kNow, other, std::nullopt));
  memory.planned(true, false, kNow, policy);
  CHECK_FALSE(memory.may_pass_over(kNow, policy, kNow + seconds(9)));  // a reservation was added
  CHECK(memory.may_pass_over(kNow, policy, kNow + seconds(9)));
}

TEST_CASE("changed nodes and jobs are listed once, until they are forgotten") {
  Memory memory;
  memory.touch_node(3);
  memory.touch_node(70);
  memory.touch_node(3);
  memory.touch_job(JobId{5});
  CHECK(memory.nodes() == std::vector<std::uint32_t>{3, 70});
  CHECK(memory.jobs() == std::vector<JobId>{JobId{5}});
  CHECK(memory.touched(70));
  CHECK_FALSE(memory.touched(4));
  memory.forget_changes();
  CHECK(memory.nodes().empty());
  CHECK(memory.jobs().empty());
  CHECK_FALSE(memory.touched(70));
  memory.of(2).asleep = true;
  memory.touch_partition(PartitionId{1});
  CHECK(memory.of(2).asleep);
  memory.touch_partition(PartitionId{2});
  CHECK_FALSE(memory.of(2).asleep);
}

struct Keys {
  Keys() {
    keys.begin(1);
    for (Bits* nodes : {&some, &others}) nodes->resize(8);
    some.set(1);
    some.set(2);
    others.set(5);
  }
  std::uint32_t request(std::uint32_t cpus, Duration limit, std::uint32_t nodes,
                        std::uint32_t flavor = 0) {
    Demand demand;
    demand.cpus_per_task = cpus;
    return keys.number_of(nodes, demand, limit, {flavor, {}});
  }
  RequestKeys keys;
  Bits some, others;
};

TEST_CASE("requests that no placement can tell apart have one number") {
  Keys k;
  const std::uint32_t some = k.keys.nodes_of(0, k.some);
  CHECK(k.keys.nodes_of(1, k.some) == some);  // another set with the same nodes
  CHECK(k.keys.nodes_of(2, k.others) != some);
  const std::uint32_t two = k.request(2, seconds(10), some);
  CHECK(k.request(2, seconds(10), some) == two);
  const std::uint32_t longer = k.request(2, seconds(20), some),
                      gold = k.request(2, seconds(10), some, 1);
  CHECK(longer != two);
  CHECK(gold != two);
  CHECK(k.keys.key(longer).demand_id == k.keys.key(two).demand_id);
  CHECK(k.keys.key(gold).demand_id == k.keys.key(two).demand_id);
  CHECK(k.keys.key(k.request(3, seconds(10), some)).demand_id != k.keys.key(two).demand_id);
  CHECK(k.keys.demand_ids() == 2);
  k.keys.begin(1);
  CHECK(k.keys.demand_ids() == 2);
  k.keys.begin(2);  // nodes or partitions have changed
  CHECK(k.keys.demand_ids() == 0);
}

TEST_CASE("a failed request fails for all that ask for no less, at this place and behind it") {
  Keys k;
  const std::uint32_t some = k.keys.nodes_of(0, k.some), others = k.keys.nodes_of(1, k.others);
  const std::uint32_t own = k.request(2, seconds(10), some);
  const Place place{1, 500};
  CHECK_FALSE(k.keys.known_to_fail(own, place));
  k.keys.failed(own, place);
  const std::uint64_t noted = k.keys.failures();
  CHECK(noted > 0);
  CHECK(k.keys.fails(own, place));
  CHECK(k.keys.fails(own, {1, 400}));
  CHECK(k.keys.fails(own, {0, 900}));
  CHECK_FALSE(k.keys.fails(own, {1, 501}));
  CHECK_FALSE(k.keys.fails(own, {2, 0}));
  const std::uint32_t larger = k.request(3, seconds(10), some);
  CHECK_FALSE(k.keys.fails(larger, place));  // this request itself has not failed yet
  CHECK(k.keys.known_to_fail(larger, place));
  CHECK(k.keys.fails(larger, place));  // now it is noted as failed
  CHECK(k.keys.failures() > noted);
  CHECK(k.keys.known_to_fail(k.request(2, seconds(11), some), place));
  CHECK_FALSE(k.keys.known_to_fail(k.request(2, seconds(9), some), place));
  CHECK_FALSE(k.keys.known_to_fail(k.request(1, seconds(10), some), place));
  CHECK_FALSE(k.keys.known_to_fail(k.request(3, seconds(10), others), place));
  k.keys.forget_failures();
  CHECK_FALSE(k.keys.known_to_fail(own, place));
  CHECK_FALSE(k.keys.known_to_fail(larger, place));
}

TEST_CASE("new room on a node reopens the requests that could be met there") {
  Keys k;
  const std::uint32_t some = k.keys.nodes_of(0, k.some), others = k.keys.nodes_of(1, k.others);
  const std::uint32_t small = k.request(1, seconds(10), some),
                      large = k.request(4, seconds(10), some);
  const std::uint32_t elsewhere = k.request(1, seconds(10), others);
  const Place place{0, 0};
  for (const std::uint32_t r : {small, large, elsewhere}) k.keys.failed(r, place);
  const auto up_to_two = [](const RequestKey& r) { return r.demand.cpus_per_task <= 2; };
  CHECK_FALSE(k.keys.reopen(3, up_to_two));  // no request may use this node
  CHECK(k.keys.reopen(1, up_to_two));
  CHECK_FALSE(k.keys.fails(small, place));
  CHECK(k.keys.fails(large, place));
  CHECK(k.keys.fails(elsewhere, place));
  CHECK_FALSE(k.keys.reopen(1, up_to_two));  // the request is open already
}

TEST_CASE("a search in vain counts for all jobs that ask alike and do not end sooner") {
  InVain in_vain;
  const Asker red{1, 2, 3};
  in_vain.note(red, seconds(10));
  CHECK(in_vain.knows(red, seconds(10)));
  CHECK(in_vain.knows(red, seconds(11)));
  CHECK(in_vain.knows(red, std::nullopt));
  CHECK_FALSE(in_vain.knows(red, seconds(9)));
  CHECK_FALSE(in_vain.knows({2, 2, 3}, seconds(10)));
  CHECK_FALSE(in_vain.knows({1, 3, 3}, seconds(10)));
  CHECK_FALSE(in_vain.knows({1, 2, 0}, seconds(10)));
  in_vain.note(red, seconds(20));  // this adds nothing new
  CHECK(in_vain.knows(red, seconds(10)));
  in_vain.note(red, seconds(5));
  CHECK(in_vain.knows(red, seconds(5)));
  in_vain.note({9, 9, 9}, std::nullopt);
  CHECK_FALSE(in_vain.knows({9, 9, 9}, seconds(100)));
}

// A full cluster, and a job of four cores for which the last plan found no room.
struct Asleep : Steps {
  explicit Asleep(Blocked::By by = Blocked::By::room) : Steps(red_alone(100)) {
    fill(kNow + seconds(500));
    job = submit(4);
    Making m(*this);
    LineTurn turn = blocked(m.d, job, by);
    request =
        m.nodes.request_of(class_of(job), replica.view().eligible.flavors_of(class_of(job))[0]);
    if (by == Blocked::By::room) m.d.left.requests.failed(request, m.d.place(turn));
    Awake(m.d, m.quota, m.nodes, m.book).remember({&turn, 1});
  }
  // Returns the partitions that are awake in a plan after changes of these nodes.
  std::vector<std::uint32_t> awake(const std::set<std::uint32_t>& nodes,
                                   const std::set<std::uint32_t>& woken = {}) {
    Making m(*this);
    m.d.everything = false;
    return Awake(m.d, m.quota, m.nodes, m.book).begin(woken, nodes, !nodes.empty());
  }
  void leave(std::uint32_t node) { end(running_on(node).at(0), node); }
  const Memory::PartitionMemory& memory() { return replica.left().memory.of(0); }

  JobId job;
  std::uint32_t request = 0;
};

using Partitions = std::vector<std::uint32_t>;

TEST_CASE("a partition sleeps until there is more room for one of its requests") {
  Asleep s{Blocked::By::room};
  CHECK(s.memory().asleep);
  CHECK_FALSE(s.memory().restless);
  REQUIRE(s.memory().waits.size() == 1);
  CHECK(s.memory().waits[0].request == s.request);
  CHECK(s.awake({}) == Partitions{});
  CHECK(s.awake({1}) == Partitions{});  // the node has changed, but is as full as before
  CHECK(s.awake({}, {0}) == Partitions{0});
  s.leave(1);
  CHECK(s.awake({2}) == Partitions{});  // another node has become freer
  CHECK(s.awake({1}) == Partitions{0});
}

TEST_CASE("neither too few cores nor room without quota wakes a partition") {
  Asleep s{Blocked::By::room};
  s.leave(0);
  s.run(0, {0, 1, 2}, kNow + seconds(500));
  CHECK(s.awake({0}) == Partitions{});
  s.leave(1);
  {
    Making m(s);
    QuotaNeed need;
    need.amount.set<Resource::cpu>(thousandths_of(Cores{90}));
    m.d.everything = false;
    m.d.view.charges.tree().add(0, need);
    CHECK(Awake(m.d, m.quota, m.nodes, m.book).begin({}, {1}, true) == Partitions{});
    m.d.view.charges.tree().remove(0, need);
  }
  CHECK(s.awake({1}) == Partitions{0});
}

TEST_CASE("a partition that waits for neither room nor quota is woken by a change of any node") {
  Asleep s{Blocked::By::reservation};
  CHECK(s.memory().asleep);
  CHECK(s.memory().restless);
  CHECK(s.memory().waits.empty());
  CHECK(s.awake({}) == Partitions{});
  CHECK(s.awake({1}) == Partitions{0});
}

TEST_CASE("a partition that starts a job, or had no turn, is not put to sleep") {
  Steps s;
  const JobId job = s.submit(4);
  Making m(s);
  const LineTurn turn = s.blocked(m.d, job);
  m.d.partition(0).starts = 1;
  Awake awake(m.d, m.quota, m.nodes, m.book);
  awake.remember({&turn, 1});
  CHECK_FALSE(s.replica.left().memory.of(0).asleep);
}

TEST_CASE("the order skips lines of which no job can start") {
  Asleep s{Blocked::By::room};
  Making m(s);
  m.d.everything = false;
  Awake awake(m.d, m.quota, m.nodes, m.book);
  (void)awake.begin({}, {}, false);
  const Order::Passing passing = awake.passing();
  const Step own{s.waiting(s.job), kNoShare, s.request, {}};
  CHECK(passing.lines(0));
  CHECK(passing.line(0, own));
  CHECK(passing.failures() == m.d.left.requests.failures());
  CHECK(passing.all(0));
  CHECK(m.d.partition(0).passed_over);
  Step higher = own;  // what failed for others may succeed for a job of higher rank
  higher.first.rank += 1;
  CHECK_FALSE(passing.line(0, higher));
  Step unknown = own;
  unknown.request = RequestKeys::kNone;
  CHECK_FALSE(passing.line(0, unknown));
  // A partition that has started a job, or was woken, is looked at completely.
  m.d.partition(0).starts = 1;
  CHECK_FALSE(passing.all(0));
  m.d.partition(0).starts = 0;
  (void)awake.begin({0}, {}, false);
  CHECK_FALSE(passing.lines(0));
  CHECK_FALSE(passing.all(0));
}

TEST_CASE("a job that starts on reserved nodes early ends a plan that skips partitions") {
  Asleep s{Blocked::By::room};
  s.leave(1);
  const Reservation early = reservation(JobId{99}, kNow + seconds(100), 1);
  const auto cut = [&](bool everything, Instant start, std::uint32_t node) {
    Making m(s);
    m.d.everything = everything;
    m.d.left.requests.failed(s.request, {0, 500});
    Reservation r = early;
    r.start = start;
    Awake(m.d, m.quota, m.nodes, m.book).wake_behind(r, {{node, 1}});
    return m.d.cut;
  };
  CHECK(cut(false, early.start, 1));
  CHECK_FALSE(cut(true, early.start, 1));
  CHECK_FALSE(cut(false, kNow, 1));  // the reservation was due
  // the job runs on another node, so its reserved room stays held
  CHECK_FALSE(cut(false, early.start, 2));
}

}  // namespace
}  // namespace gantry::sched::steps
