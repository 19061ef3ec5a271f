// What must hold for any input: random clusters, random jobs, random events, many seeds.
#include <doctest/doctest.h>

#include <fmt/core.h>

#include "tests/sched/world.h"

namespace gantry::sched {
namespace {

constexpr std::uint64_t kSeeds = 60;
constexpr int kTurns = 120;

void feed(Replica& replica, const std::vector<Change>& changes) {
  for (const Change& c : changes) replica.apply(c);
}

// A plan as text, so that two can be compared and a difference be read.
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
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    CAPTURE(seed);
    World world(seed, {});
    Replica replica;
    feed(replica, world.initial());
    const Policy policy = policy_for(seed);
    for (int turn = 0; turn < kTurns; ++turn) {
      CAPTURE(turn);
      feed(replica, world.random_turn());
      const Plan plan = schedule(replica, world.now, policy);
      REQUIRE(world.check(plan) == "");
      REQUIRE(replica.audit() == "");
      REQUIRE(print(plan) == print(schedule(replica, world.now, policy)));
      Replica fresh;
      feed(fresh, world.facts());
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

TEST_CASE("without reservations nothing waits that would fit") {
  Policy policy;
  policy.reservations = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    CAPTURE(seed);
    World world(seed, {});
    Replica replica;
    feed(replica, world.initial());
    for (int turn = 0; turn < kTurns; ++turn) {
      CAPTURE(turn);
      feed(replica, world.random_turn());
      feed(replica, world.accept(schedule(replica, world.now, policy)));
      REQUIRE(world.check_nothing_fits() == "");
    }
  }
}

// Nothing that comes later, is backfilled or ends early may move the first blocked job back.
void promise_holds(std::uint64_t seed, const Policy& policy) {
  World world(seed, {.nodes = 6, .partitions = 1, .plain = true});
  Replica replica;
  feed(replica, world.initial());
  std::map<JobId, Instant> promised;
  for (int turn = 0; turn < kTurns; ++turn) {
    CAPTURE(turn);
    feed(replica, world.random_turn());
    const Plan plan = schedule(replica, world.now, policy);
    // A job whose time has come must start; a reservation is never later than it was. What may be
    // gone is a reservation of a job in front, which gives its room to those behind.
    std::map<JobId, Instant> next;
    for (const Expected& e : plan.expected) next.try_emplace(e.job, e.start);
    for (const auto& [job, at] : promised) {
      if (!world.waiting.contains(job)) continue;
      CAPTURE(job.value());
      const bool starts = std::any_of(plan.starts.begin(), plan.starts.end(),
                                      [&, j = job](const Start& s) { return s.job == j; });
      if (starts) continue;
      REQUIRE(next.contains(job));
      REQUIRE(next.at(job).us <= at.us);
      REQUIRE(next.at(job).us > world.now.us);
    }
    promised = std::move(next);
    feed(replica, world.accept(plan));
    for (const Start& s : plan.starts)
      if (!world.waiting.contains(s.job)) promised.erase(s.job);
  }
}

TEST_CASE("the first blocked job is never delayed") {
  Policy policy;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    CAPTURE(seed);
    promise_holds(seed, policy);
  }
}

}  // namespace
}  // namespace gantry::sched
