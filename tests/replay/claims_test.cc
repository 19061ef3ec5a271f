// Random replays with quota, with jobs of 1 to 32 GPUs on nodes of eight: a claim that the quota
// allows, and for which a set of jobs may be preempted, is met by the reclaim deadline. There are
// 60 replays, or 1,000 with GANTRY_LONG=1.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <cstdlib>
#include <random>

#include "ctld/replay/report.h"

namespace gantry::replay {
namespace {

std::uint64_t cases(std::uint64_t few) {
  const char* text = std::getenv("GANTRY_LONG");
  return text != nullptr && *text == '1' ? 1'000 : few;
}

// Makes a trace of jobs of four tenants that need more than the cluster has.
std::string random_trace(std::mt19937_64& random, std::uint64_t nodes) {
  const auto pick = [&](std::uint64_t n) {
    return std::uniform_int_distribution<std::uint64_t>(0, n - 1)(random);
  };
  constexpr std::uint32_t kSizes[] = {1, 1, 1, 1, 2, 4, 8, 8, 16, 24, 32};
  std::string csv = "submit,run,gpus,tenant\n";
  std::uint64_t at = 0, work = 0;
  for (int i = 0; i < 150; ++i) {
    const std::uint32_t gpus = kSizes[pick(std::size(kSizes))];
    const std::uint64_t run = (20 + pick(pick(4) == 0 ? 20'000 : 2'000)) / (gpus > 8 ? 4 : 1) + 1;
    csv += fmt::format("{},{},{},{}\n", at, run, gpus, "abcd"[pick(4)]);
    work += gpus * run;
    at = std::max(at, work / (nodes * 8)) + pick(60);
    if (pick(5) == 0) at += pick(300);
  }
  return csv;
}

TEST_CASE("a claim for which there are victims is met by the reclaim deadline") {
  double no_place = 0;
  std::uint64_t preempted = 0;
  for (std::uint64_t seed = 1; seed <= cases(60); ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const std::uint64_t nodes = 5 + seed % 8;
    const auto trace = parse_trace(random_trace(random, nodes), "t", TraceFormat::csv, {});
    REQUIRE_MESSAGE(trace, trace.error().message);
    const Cluster cluster = *read_cluster(fmt::format("{}x8gpu", nodes));
    const auto policy = parse_policy(seed % 3 == 0 ? std::string("tenants=mean")
                                                   : fmt::format("tenants=mean,draw={}", seed));
    REQUIRE_MESSAGE(policy, policy.error().message);
    const auto site = make_site(cluster, *policy, *trace);
    REQUIRE_MESSAGE(site, site.error().message);
    const auto outcome = replay(*trace, cluster, *site, yardstick_of(*site), {});
    REQUIRE_MESSAGE(outcome, outcome.error().message);
    REQUIRE(outcome->audit == "");
    const Report report = summarise(*outcome, *trace);
    CHECK_MESSAGE(report.all.violation == 0, to_violations(*outcome, cluster.unit));
    no_place += report.all.no_place;
    preempted += outcome->preemptions;
  }
  MESSAGE(preempted << " preempted; no place for " << no_place << " s");
  CHECK(preempted > 200);
}

}  // namespace
}  // namespace gantry::replay
