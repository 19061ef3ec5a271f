// Compares the scheduler with a reference: EASY on the KTH-SP2 log, the waits of all 28,481 jobs.
// Skipped if the traces are missing.
#include <doctest/doctest.h>

#include <cstdio>

#include "tests/sched/replay.h"

namespace gantry::sched {
namespace {

constexpr std::uint32_t kProcessors = 100;

void compare(const char* file, Pool pool, bool exact_limits) {
  auto jobs = read_swf(trace_path(file));
  if (!jobs) {
    std::printf("skipped: no %s\n", trace_path(file).c_str());
    return;
  }
  REQUIRE(jobs->size() > 28'000);
  if (exact_limits)
    for (LogJob& job : *jobs) job.limit = job.run;
  Policy policy;
  policy.depth = ~std::uint32_t{0};
  const Replayed result = replay(*jobs, kProcessors, pool, policy);
  CHECK(result.audit == "");
  std::size_t different = 0;
  for (std::size_t i = 0; i < jobs->size(); ++i)
    if (result.waits[i] != (*jobs)[i].logged_wait && ++different <= 10)
      MESSAGE("job ", (*jobs)[i].id, " waits ", result.waits[i], " instead of ",
              (*jobs)[i].logged_wait);
  MESSAGE(std::string(file), ": ", different, " of ", jobs->size(),
          " waits differ, bounded slowdown ", mean_bounded_slowdown(*jobs, result.waits),
          ", backfilled ", result.backfilled);
  CHECK(different == 0);
}

TEST_CASE("EASY on KTH-SP2 with all processors on one node equals the reference") {
  compare("pyss_easy_KTH-SP2.swf.gz", Pool::one_node, false);
}

TEST_CASE("EASY on KTH-SP2 with one node for each processor equals the reference") {
  compare("pyss_easy_KTH-SP2.swf.gz", Pool::many_nodes, false);
}

TEST_CASE("EASY on KTH-SP2 with exact limits equals the reference") {
  compare("pyss_easy_clairvoyant_KTH-SP2.swf.gz", Pool::one_node, true);
}

}  // namespace
}  // namespace gantry::sched
