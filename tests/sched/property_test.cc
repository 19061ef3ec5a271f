// Properties that hold for any input: random clusters, jobs and events with many seeds; 10,000
// clusters with GANTRY_LONG=1.
#include <doctest/doctest.h>

#include <map>
#include <vector>

#include <fmt/core.h>

#include "tests/sched/cases.h"
#include "tests/sched/world.h"

namespace gantry::sched {
namespace {

constexpr int kSeeds = 60;

std::uint64_t seeds() {
  return static_cast<std::uint64_t>(cases(kSeeds));
}
int turns(std::uint64_t seed) {
  return seed <= kSeeds ? 120 : 24;
}

void feed(Replica& replica, const std::vector<Change>& changes) {
  for (const Change& c : changes) replica.apply(c);
}

// Writes a plan as text, so that two plans can be compared and a difference can be read.
std::string print(const Plan& plan) {
  std::string text;
  for (const Start& s : plan.starts) {
    text += fmt::format("start {}:", s.job.value());
    for (const NodeGrant& g : s.grants) {
      text += fmt::format(" n{} tasks {} mem {} cpus", g.node.value(), g.tasks, g.memory);
      for (const auto c : g.cpus) text += fmt::format(" {}", c);
    }
    text += "\n";
  }
  for (const Expected& e : plan.expected)
    text += fmt::format("expected {} at {} on {}\n", e.job.value(), e.start.us, e.nodes.size());
  for (const ClassVerdict& v : plan.verdicts)
    text += fmt::format("head {}: {} {} {} {}; rest {} {}\n", v.head.value(),
                        static_cast<int>(v.of_head.reason), v.of_head.a, v.of_head.b,
                        v.of_head.subject, static_cast<int>(v.of_rest.reason), v.of_rest.a);
  return text;
}

Policy policy_for(std::uint64_t seed) {
  Policy policy;
  policy.reservations = std::array{1u, 1u, 3u, 1000u}[seed % 4];
  policy.estimates = seed % 2 == 0 ? 0 : 10;
  return policy;
}

TEST_CASE(
    "plans are valid, repeatable, leave no trace, and equal those of a replica from scratch") {
  std::size_t starts = 0, backfilled = 0, exclusive = 0;
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
    CAPTURE(seed);
    World world(seed, {});
    Replica replica;
    feed(replica, world.initial());
    const Policy policy = policy_for(seed);
    for (int turn = 0; turn < turns(seed); ++turn) {
      CAPTURE(turn);
      feed(replica, world.random_turn());
      const Plan plan = schedule(replica, world.now, policy);
      REQUIRE(world.check(plan) == "");
      REQUIRE(replica.audit() == "");
      REQUIRE(print(plan) == print(schedule(replica, world.now, policy)));
      Replica fresh;
      feed(fresh, world.facts());
      fresh.expect(replica.mix());
      REQUIRE(print(plan) == print(schedule(fresh, world.now, policy)));
      starts += plan.starts.size();
      backfilled += plan.stats.backfilled;
      for (const Start& s : plan.starts)
        exclusive += world.waiting.at(s.job).key.shape.exclusive ? 1 : 0;
      feed(replica, world.accept(plan));
    }
  }
  CHECK(starts > 3000);
  CHECK(backfilled > 300);
  CHECK(exclusive > 50);
}

TEST_CASE("without reservations no job waits that would fit") {
  Policy policy;
  policy.reservations = 0;
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
    CAPTURE(seed);
    World world(seed, {});
    Replica replica;
    feed(replica, world.initial());
    for (int turn = 0; turn < turns(seed); ++turn) {
      CAPTURE(turn);
      feed(replica, world.random_turn());
      feed(replica, world.accept(schedule(replica, world.now, policy)));
      REQUIRE(world.check_nothing_fits() == "");
    }
  }
}

// Nodes and start that the last plan reserved for each waiting job.
using Said = std::map<JobId, Expected>;

// Counts the jobs in front of this one in its line whose reservations are no later than its own.
std::int64_t in_front(const World& world, const std::vector<Expected>& all, const Expected& was) {
  return std::count_if(all.begin(), all.end(), [&](const Expected& e) {
    return e.job < was.job && e.start <= was.start && world.waiting.contains(e.job) &&
           world.waiting.at(e.job).key == world.waiting.at(was.job).key;
  });
}

// Returns the reason why a reservation may be later now than in `last`; "" if there is none.
std::string excuse(const World& world, const Plan& plan, const std::vector<Expected>& last,
                   const Expected& was) {
  for (const NodeId n : was.nodes)
    if (!world.available(n)) return "a node was lost";
  const auto waits = world.waiting.find(was.job);
  const auto above = [&](JobId other) {
    const auto it = world.waiting.find(other);
    return it != world.waiting.end() && it->second.rank > waits->second.rank;
  };
  for (const Start& s : plan.starts)
    if (above(s.job)) return "a higher rank starts";
  for (const Expected& e : plan.expected)
    if (above(e.job)) return "a higher rank is promised";
  // The reservations of a line belong to its first jobs, the earliest to the first job
  // (exchange.cc). If one of these jobs loses its reservation, the jobs behind it get later ones in
  // the next turn.
  if (in_front(world, plan.expected, was) > in_front(world, last, was))
    return "a job in front of it in its line has its promise now";
  return "";
}

// Checks that a job starts when its reserved time has come, and that no reservation is moved later
// except after the loss of a node or for a higher rank. Returns how many were moved later.
std::size_t promises_hold(std::uint64_t seed, const Policy& policy, const WorldOptions& options) {
  World world(seed, options);
  Replica replica;
  feed(replica, world.initial());
  Said said;
  std::vector<Expected> last;
  std::size_t excused = 0;
  for (int turn = 0; turn < turns(seed); ++turn) {
    CAPTURE(turn);
    feed(replica, world.random_turn());
    const Plan plan = schedule(replica, world.now, policy);
    Said next;
    for (const Expected& e : plan.expected) next.try_emplace(e.job, e);
    for (const auto& [job, was] : said) {
      if (!world.waiting.contains(job)) continue;
      CAPTURE(job.value());
      const bool starts = std::any_of(plan.starts.begin(), plan.starts.end(),
                                      [&, j = job](const Start& s) { return s.job == j; });
      if (starts) continue;
      const auto is = next.find(job);
      if (is != next.end() && is->second.start <= was.start && is->second.start > world.now)
        continue;
      REQUIRE(excuse(world, plan, last, was) != "");
      ++excused;
    }
    // As in the controller, a plan is made when a reservation is due.
    world.not_beyond.reset();
    for (const Expected& e : plan.expected)
      if (!world.not_beyond || e.start < *world.not_beyond) world.not_beyond = e.start;
    said = std::move(next);
    last = plan.expected;
    feed(replica, world.accept(plan));
    for (const Start& s : plan.starts)
      if (!world.waiting.contains(s.job)) said.erase(s.job);
  }
  return excused;
}

TEST_CASE("the first blocked job is never delayed") {
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
    CAPTURE(seed);
    REQUIRE(promises_hold(seed, {}, {.nodes = 6, .partitions = 1, .plain = true}) == 0);
  }
}

TEST_CASE("a kept reservation is never moved later, but for a lost node or a higher rank") {
  std::size_t excused = 0;
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
    CAPTURE(seed);
    Policy policy;
    policy.keep_reservations = true;
    policy.reservations = std::array{1u, 3u, 1000u}[seed % 3];
    policy.ahead = seed % 2 == 0 ? 0 : 5;
    const bool steady = seed % 4 == 0;
    const WorldOptions options{
        .nodes = 6, .partitions = 1, .plain = true, .losses = !steady, .ranks = seed % 4 == 1};
    const std::size_t late = promises_hold(seed, policy, options);
    if (steady) REQUIRE(late == 0);
    excused += late;
  }
  CHECK(excused > 0);
}

}  // namespace
}  // namespace gantry::sched
