// Tests what would happen if a job asked for something else: the answers on a small cluster, and
// that asking changes nothing, on random ones.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include "ctld/sched/verdict/what_if.h"
#include "tests/sched/world.h"

namespace gantry::sched {
namespace {

constexpr Instant kNow{seconds(1'000'000).us};
constexpr std::int64_t kGiB = std::int64_t{1} << 30;

// Two nodes of 8 cores and 4 GPUs; job 1 has two GPUs of each node for an hour.
struct Cluster {
  Replica replica;
  ClassKey key;

  Cluster() {
    PartitionChanged p;
    p.name = "p";
    for (std::uint32_t n = 0; n < 2; ++n) {
      NodeChanged node;
      node.node = NodeId{n};
      node.name = fmt::format("n{}", n);
      node.available = true;
      for (std::uint16_t cpu = 0; cpu < 8; ++cpu) node.cpus.push_back(cpu);
      node.memory = 64 * kGiB;
      node.gpus = 4;
      node.gpu_model = n == 0 ? "a100" : "v100";
      replica.apply(node);
      p.nodes.push_back(NodeId{n});
    }
    replica.apply(p);
    JobPlaced running;
    running.job = JobId{1};
    running.ends_by = kNow + hours(1);
    for (std::uint32_t n = 0; n < 2; ++n)
      running.grants.push_back({NodeId{n}, {0, 1}, kGiB, 0, 2, 1, {}, {}});
    replica.apply(running);
    key.time_limit = hours(2);
    key.shape.memory_per_node = kGiB;
    key.shape.gpus_per_node = 4;
  }
  void wait(const ClassKey& k) { replica.apply(JobQueued{JobId{2}, k, 0, kNow, 1, 0, {}}); }
  std::string answers() {
    std::string out;
    const auto say = [&](const std::string& what, const std::optional<Instant>& t) {
      out += fmt::format("{}: {}\n", what,
                         t ? fmt::format("+{}m", (*t - kNow).seconds() / 60) : "never");
    };
    const ClassKey own = *key_of(replica, JobId{2});
    say("as it is", start_if(replica, kNow, Policy{}, JobId{2}, own));
    for (const Variant& v : variants_of(own))
      say(v.options, start_if(replica, kNow, Policy{}, JobId{2}, v.key));
    return out;
  }
};

std::string text_of(const Plan& plan) {
  std::string out;
  for (const Start& s : plan.starts) {
    out += fmt::format("start {}", s.job.value());
    for (const NodeGrant& g : s.grants) out += fmt::format(" {}:{}", g.node.value(), g.cpus.size());
    out += "\n";
  }
  for (const Expected& e : plan.expected)
    out += fmt::format("expect {} at {}\n", e.job.value(), e.start.us);
  for (const ClassVerdict& v : plan.verdicts)
    out += fmt::format("{} {} {} {}\n", v.head.value(), enum_name(v.of_head.reason), v.of_head.a,
                       enum_name(v.of_rest.reason));
  return out;
}

}  // namespace

TEST_CASE("the answers give the start with fewer GPUs, a shorter time or another model") {
  Cluster c;
  c.wait(c.key);
  CHECK(c.answers() ==
        "as it is: +60m\n--gpus-per-node=2: +0m\n--time=1:00:00: +60m\n--time=0:15:00: +60m\n");
  Cluster models;
  models.key.shape.gpus_per_node = 2;
  models.key.shape.gpu_models = {"a100"};
  models.replica.apply(
      JobPlaced{JobId{3}, {{NodeId{0}, {2, 3}, kGiB, 0, 2, 1, {}, {}}}, kNow + hours(3)});
  models.wait(models.key);
  CHECK(models.answers() ==
        "as it is: +60m\n--gpus-per-node=1: +60m\n--time=1:00:00: +60m\n--time=0:15:00: +60m\n"
        "without --gpu-model: +0m\n");
}

TEST_CASE("the answers know a reservation ahead, and that a job can never start") {
  Cluster c;
  c.key.shape.gpus_per_node = 0;
  c.replica.apply(ReservationChanged{
      "firmware", {NodeId{0}, NodeId{1}}, kNow + minutes(45), kNow + hours(3), {}, true, false});
  c.wait(c.key);
  CHECK(c.answers() == "as it is: +180m\n--time=1:00:00: +180m\n--time=0:15:00: +0m\n");
  Cluster never;
  never.key.shape.gpus_per_node = 16;
  never.wait(never.key);
  CHECK(never.answers().starts_with("as it is: never\n--gpus-per-node=8: never\n"));
  CHECK_FALSE(key_of(never.replica, JobId{77}));
  CHECK_FALSE(start_if(never.replica, kNow, Policy{}, JobId{77}, never.key));
}

TEST_CASE("a shorter limit is a usual one, and a change has to gain something") {
  ClassKey key;
  const auto limits = [&](Duration limit) {
    key.time_limit = limit;
    std::string out;
    for (const Variant& v : variants_of(key)) out += v.options + " ";
    return out;
  };
  CHECK(limits(minutes(75)) == "--time=0:30:00 --time=0:05:00 ");
  CHECK(limits(hours(30)) == "--time=12:00:00 --time=3:00:00 ");
  CHECK(limits(minutes(2)) == "--time=0:01:00 ");
  CHECK(limits(minutes(1)).empty());
  CHECK(is_worth_it(kNow, std::nullopt, kNow + hours(5)));
  CHECK(is_worth_it(kNow, kNow + hours(1), kNow));
  CHECK_FALSE(is_worth_it(kNow, kNow + hours(1), kNow + hours(1)));
  CHECK_FALSE(is_worth_it(kNow, kNow + hours(10), kNow + hours(10) - minutes(20)));
  CHECK_FALSE(is_worth_it(kNow, kNow + seconds(90), kNow + seconds(60)));
}

TEST_CASE("asking what would happen changes nothing") {
  std::size_t asked = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    World world(seed, {});
    Replica replica;
    for (const Change& change : world.initial()) replica.apply(change);
    for (int turn = 0; turn < 12; ++turn) {
      for (const Change& change : world.random_turn()) replica.apply(change);
      Policy policy;
      policy.estimates = 100;
      const std::string before = text_of(schedule(replica, world.now, policy));
      for (const auto& [id, queued] : world.waiting) {
        const auto key = key_of(replica, id);
        if (!key || asked % 3 != 0) {
          ++asked;
          continue;
        }
        for (const Variant& v : variants_of(*key)) {
          ++asked;
          (void)start_if(replica, world.now, policy, id, v.key);
        }
        REQUIRE(*key_of(replica, id) == *key);
      }
      REQUIRE(replica.audit().empty());
      const Plan plan = schedule(replica, world.now, policy);
      REQUIRE(text_of(plan) == before);
      for (const Change& change : world.accept(plan)) replica.apply(change);
    }
  }
  CHECK(asked > 1000);
}

}  // namespace gantry::sched
