// A plan that skips sleeping partitions starts the same jobs as a plan that looks at everything: on
// random clusters with tenants and random changes, each plan is compared with that of a replica
// from scratch. Also, the same changes at the same times give the same plans in another replica.
// GANTRY_LONG=1 compares at least 10,000 of each, otherwise some hundreds.
#include <doctest/doctest.h>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "tests/sched/cases.h"
#include "tests/sched/site.h"

namespace gantry::sched {
namespace {

std::string print(const Plan& plan) {
  std::string text;
  for (const Start& s : plan.starts) {
    text += fmt::format("start {}", s.job.value());
    for (const NodeGrant& g : s.grants)
      text += fmt::format(" n{}:{}", g.node.value(), fmt::join(g.cpus, ","));
    text += "\n";
  }
  return text;
}

void feed(Replica& replica, const std::vector<Change>& changes) {
  for (const Change& c : changes) replica.apply(c);
}

Policy policy_for(std::uint64_t seed) {
  Policy policy;
  policy.keep_reservations = true;
  policy.everything = seconds(seed % 2 == 0 ? 10 : 40);
  policy.reservations = static_cast<std::uint32_t>(1 + seed % 3);
  policy.ahead = seed % 5 == 0 ? 10 : 0;
  policy.preemption = seed % 4 != 0;
  return policy;
}

struct Compared {
  std::size_t plans = 0, started = 0, cut = 0, passed = 0;
};

// Compares each plan that skips a partition with the plan of a replica from scratch.
void compare_history(std::uint64_t seed, Compared& sum) {
  CAPTURE(seed);
  Site site(seed);
  Replica replica;
  feed(replica, site.facts());
  const Policy policy = policy_for(seed);
  // This policy switches off what only a plan that looks at everything does.
  Policy only_starts = policy;
  only_starts.everything = Duration{};
  only_starts.reservations = only_starts.ahead = only_starts.replans = 0;
  only_starts.preemption = false;
  for (int turn = 0; turn < 120; ++turn) {
    CAPTURE(turn);
    feed(replica, site.turn());
    Replica fresh;
    feed(fresh, site.facts());
    fresh.set_reservations(replica.reservations());
    const Plan plan = schedule(replica, site.now, policy);
    REQUIRE(replica.audit() == "");
    fresh.expect(replica.mix());
    if (!plan.stats.everything) {
      const std::string is = print(plan);
      const std::string anew = print(schedule(fresh, site.now, only_starts));
      // A plan that was cut short has the first of these starts; the next plan looks at everything.
      if (plan.stats.budget_spent && is != anew) {
        ++sum.cut;
        REQUIRE(anew.starts_with(is));
      } else {
        REQUIRE(is == anew);
      }
      ++sum.plans;
      sum.started += plan.starts.size();
      sum.passed += plan.stats.classes == 0 ? 1 : 0;
    }
    feed(replica, site.accept(plan));
  }
}

TEST_CASE("skipping sleeping partitions changes no start") {
  const auto wanted = static_cast<std::size_t>(cases(800));
  Compared sum;
  for (std::uint64_t seed = 1; sum.plans < wanted; ++seed) compare_history(seed, sum);
  CHECK(sum.started > wanted / 10);
  CHECK(sum.passed > wanted / 50);
  CHECK(sum.cut < wanted / 50);
}

TEST_CASE("the histories of seeds 39 and 968 start the same jobs as plans from scratch") {
  Compared sum;
  for (const std::uint64_t seed : {39, 968}) compare_history(seed, sum);
}

// Writes everything that is in a plan.
std::string print_all(const Plan& plan) {
  std::string text = print(plan);
  for (const Preempt& p : plan.preemptions)
    text += fmt::format("{} leaves for {}\n", p.victim.value(), p.for_job.value());
  for (const Expected& e : plan.expected)
    text += fmt::format("expected {} at {} on {}\n", e.job.value(), e.start.us, e.nodes.size());
  for (const ClassVerdict& v : plan.verdicts)
    text += fmt::format("head {}: {} {} {} {}; rest {} {} {} {}\n", v.head.value(),
                        static_cast<int>(v.of_head.reason), v.of_head.a, v.of_head.b,
                        v.of_head.subject, static_cast<int>(v.of_rest.reason), v.of_rest.a,
                        v.of_rest.b, v.of_rest.subject);
  return text;
}

TEST_CASE("the same history gives the same plans, word for word") {
  const auto wanted = static_cast<std::size_t>(cases(800));
  std::size_t compared = 0, victims = 0, promised = 0;
  for (std::uint64_t seed = 1; compared < wanted; ++seed) {
    CAPTURE(seed);
    const Policy policy = policy_for(seed);
    struct Turn {
      Instant now;
      std::vector<Change> before, after;
      std::string plan;
    };
    std::vector<Turn> journal;
    Site site(seed);
    const std::vector<Change> first = site.facts();
    Replica replica;
    feed(replica, first);
    for (int turn = 0; turn < 80; ++turn) {
      Turn& t = journal.emplace_back();
      t.before = site.turn();
      t.now = site.now;
      feed(replica, t.before);
      const Plan plan = schedule(replica, site.now, policy);
      t.plan = print_all(plan);
      t.after = site.accept(plan);
      feed(replica, t.after);
      victims += plan.preemptions.size();
      promised += plan.expected.size();
    }
    Replica again;
    feed(again, first);
    for (const Turn& t : journal) {
      feed(again, t.before);
      REQUIRE(print_all(schedule(again, t.now, policy)) == t.plan);
      feed(again, t.after);
      ++compared;
    }
  }
  CHECK(victims > 0);
  CHECK(promised > wanted / 10);
}

}  // namespace
}  // namespace gantry::sched
