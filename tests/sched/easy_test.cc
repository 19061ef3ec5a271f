// A second EASY, written from its definition in sixty lines with numbers of processors only, is
// compared with the scheduler on random workloads: every job must have the same wait. GANTRY_LONG=1
// compares 10,000 workloads.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>

#include "tests/sched/cases.h"
#include "tests/sched/replay.h"

namespace gantry::sched {
namespace {

enum class Backfill { easy, conservative };

class Oracle {
 public:
  Oracle(const std::vector<LogJob>& jobs, std::uint32_t processors, Backfill backfill)
      : jobs_(jobs), backfill_(backfill), waits_(jobs.size(), -1), free_(processors) {}

  std::vector<std::int64_t> run() {
    std::size_t next = 0;
    while (next < jobs_.size() || !running_.empty()) {
      std::int64_t t = next < jobs_.size() ? jobs_[next].submit : ends_at(running_[0]);
      for (const std::size_t j : running_) t = std::min(t, ends_at(j));
      while (next < jobs_.size() && jobs_[next].submit == t) queue_.push_back(next++);
      std::vector<std::size_t> early, late;
      for (const std::size_t j : running_)
        if (ends_at(j) == t) (jobs_[j].run < jobs_[j].limit ? early : late).push_back(j);
      std::sort(early.begin(), early.end());
      for (const std::size_t j : late) end(j);
      if (early.empty()) plan(t);
      for (const std::size_t j : early) {
        end(j);
        plan(t);
      }
    }
    return waits_;
  }

 private:
  std::int64_t ends_at(std::size_t j) const {
    return jobs_[j].submit + waits_[j] + std::min(jobs_[j].run, jobs_[j].limit);
  }
  std::int64_t limit_of(std::size_t j) const {
    return jobs_[j].submit + waits_[j] + jobs_[j].limit;
  }
  void end(std::size_t j) {
    free_ += jobs_[j].processors;
    std::erase(running_, j);
  }
  void start(std::size_t j, std::int64_t t) {
    free_ -= jobs_[j].processors;
    waits_[j] = t - jobs_[j].submit;
    running_.push_back(j);
    std::erase(queue_, j);
  }

  void plan(std::int64_t t) {
    if (backfill_ == Backfill::easy)
      plan_easy(t);
    else
      plan_conservative(t);
  }

  void plan_easy(std::int64_t t) {
    while (!queue_.empty() && jobs_[queue_[0]].processors <= free_) start(queue_[0], t);
    if (queue_.empty()) return;
    // Finds, for the first blocked job, when enough processors are free (shadow) and how many are
    // then left over (extra).
    std::vector<std::size_t> by_end = running_;
    std::sort(by_end.begin(), by_end.end(),
              [&](std::size_t a, std::size_t b) { return limit_of(a) < limit_of(b); });
    std::int64_t shadow = t;
    std::int64_t extra = static_cast<std::int64_t>(free_) - jobs_[queue_[0]].processors;
    for (const std::size_t j : by_end) {
      if (extra >= 0 && limit_of(j) != shadow) break;
      shadow = limit_of(j);
      extra += jobs_[j].processors;
    }
    const std::vector<std::size_t> behind(queue_.begin() + 1, queue_.end());
    for (const std::size_t j : behind) {
      const bool before_shadow = t + jobs_[j].limit <= shadow;
      if (jobs_[j].processors > free_ || (!before_shadow && jobs_[j].processors > extra)) continue;
      if (!before_shadow) extra -= jobs_[j].processors;
      start(j, t);
    }
  }

  // Gives each job, in order, the earliest time at which it delays no other; if that is now, the
  // job starts.
  void plan_conservative(std::int64_t t) {
    // the free processors from each time on
    std::map<std::int64_t, std::int64_t> free_at{{t, free_}};
    const auto add = [&](std::int64_t at, std::int64_t change) {
      const auto it = free_at.try_emplace(at, std::prev(free_at.upper_bound(at))->second).first;
      for (auto later = it; later != free_at.end(); ++later) later->second += change;
    };
    for (const std::size_t j : running_) add(limit_of(j), jobs_[j].processors);
    for (const std::size_t j : std::vector(queue_)) {
      const std::int64_t need = jobs_[j].processors;
      auto begin = free_at.begin();
      for (auto at = begin; at != free_at.end() && at->first < begin->first + jobs_[j].limit; ++at)
        if (at->second < need) begin = std::next(at);
      const std::int64_t start_at = begin->first;
      add(start_at + jobs_[j].limit, need);
      add(start_at, -need);
      if (start_at == t) start(j, t);
    }
  }

  const std::vector<LogJob>& jobs_;
  const Backfill backfill_;
  std::vector<std::int64_t> waits_;
  std::int64_t free_;
  std::vector<std::size_t> queue_, running_;
};

// The first seeds make long logs: a day of a busy queue.
std::vector<LogJob> random_log(std::uint64_t seed, std::uint32_t processors) {
  std::mt19937_64 random(seed);
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  std::vector<LogJob> jobs;
  std::int64_t t = 0;
  for (std::uint64_t id = 1; id <= (seed <= 30 ? 250u : 40u); ++id) {
    t += pick(0, 9) < 4 ? 0 : pick(1, 12);
    LogJob job;
    job.id = id;
    job.submit = t;
    job.limit = pick(1, 12) * 10;
    job.run = pick(0, 2) == 0 ? job.limit : pick(1, job.limit);
    job.processors = static_cast<std::uint32_t>(pick(0, 4) == 0 ? pick(1, processors) : pick(1, 4));
    jobs.push_back(job);
  }
  return jobs;
}

TEST_CASE("EASY equals an independent EASY on random workloads") {
  constexpr std::uint32_t kProcessors = 20;
  Policy policy;
  policy.depth = ~std::uint32_t{0};
  std::size_t backfilled = 0;
  for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(cases(30)); ++seed) {
    CAPTURE(seed);
    const auto jobs = random_log(seed, kProcessors);
    const auto expected = Oracle(jobs, kProcessors, Backfill::easy).run();
    for (const Pool pool : {Pool::one_node, Pool::many_nodes}) {
      const Replayed result = replay(jobs, kProcessors, pool, policy);
      REQUIRE(result.waits == expected);
      backfilled += result.backfilled;
    }
  }
  CHECK(backfilled > 1000);
}

TEST_CASE("with a reservation for each job the plan equals an independent conservative backfill") {
  constexpr std::uint32_t kProcessors = 20;
  Policy policy;
  policy.depth = policy.reservations = ~std::uint32_t{0};
  int unlike_easy = 0;
  for (int i = 1; i <= cases(15); ++i) {
    CAPTURE(i);
    const auto jobs = random_log(static_cast<std::uint64_t>(i), kProcessors);
    const auto expected = Oracle(jobs, kProcessors, Backfill::conservative).run();
    REQUIRE(replay(jobs, kProcessors, Pool::one_node, policy).waits == expected);
    unlike_easy += expected != Oracle(jobs, kProcessors, Backfill::easy).run() ? 1 : 0;
  }
  CHECK(unlike_easy >= cases(15) / 3);
}

}  // namespace
}  // namespace gantry::sched
