// Tests budgets under random submits: a budget is never overrun by more than the highest possible
// cost of one job. Also tests the forecast for a steady load.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <map>
#include <random>

#include "ctld/core/money/budgets.h"
#include "ctld/core/plan_memory.h"
#include "ctld/core/runtime.h"
#include "world.h"

using namespace gantry;
using namespace gantry::core;
using namespace gantry::core::test;

namespace {

constexpr int kPatterns = 60;
constexpr int kSteps = 80;

// Simulates users and nodes: jobs are submitted and planned, nodes start them late, and each job
// ends at a random time. Some jobs end only when they are killed, kill_wait after their limit.
class Crowd {
 public:
  explicit Crowd(std::uint32_t seed) : random_(seed) {
    run("cluster n[1-3] cpus=8 mem=32G");
    run("set heartbeat=10m node_timeout=1h");
    run("up n1");
    run("up n2");
    run("up n3");
    run("quiet");
    run("tenant fraud cpu=24 user=alice,bob projects=train,serve");
    run("prices base cpu=1.00 mem=0.01");
    run("budget all tenant=fraud amount=100");
    run("budget train tenant=fraud project=train amount=40 period=week");
    run("budget bob tenant=fraud user=bob amount=30 period=quarter");
    run("apply admin");
  }

  void step() {
    switch (below(8)) {
      case 0:
      case 1:
      case 2: submit(); break;
      case 3: {
        const std::uint32_t many = below(12);
        for (std::uint32_t i = 0; i < many; ++i) submit();
        break;
      }
      case 4: forward(seconds(below(20 * 3600))); break;
      case 5: forward(seconds(below(90))); break;
      case 6: change(); break;
      default: run("plan"); break;
    }
    run("plan");
    run("plan");
    answer_starts();
    check();
  }

  void finish() {
    forward(hours(24 * 4));
    run("cancel admin user=alice");
    run("cancel admin user=bob");
    std::vector<JobId> placed;
    state().jobs.walk(JobId{}, [&](const Job& job) {
      if (job.placed()) placed.push_back(job.id);
      return true;
    });
    for (const JobId id : placed) end(id);
    check();
    CHECK(world_.check_recovery() == "");
    for (const auto& [name, stand] : stands_of(state(), world_.now()))
      CHECK(stand.reserved == Money{});
  }

  std::uint32_t starts = 0, waited = 0;

 private:
  [[nodiscard]] const State& state() const { return world_.core().state(); }
  std::uint32_t below(std::uint32_t n) {
    return std::uniform_int_distribution<>(0, n - 1)(random_);
  }

  void run(const std::string& command) {
    const std::string out = world_.run(command);
    CHECK_MESSAGE(out.find("AUDIT") == std::string::npos, (command + "\n" + out));
    CHECK_MESSAGE(out.find("REPLICA") == std::string::npos, (command + "\n" + out));
  }

  void submit() {
    const bool bob = below(3) == 0;
    run(fmt::format("submit {} name=j cpus={} mem=1G time={}m account={}{}", bob ? "bob" : "alice",
                    1 + below(8), 1 + below(below(2) == 0 ? 1500 : 90),
                    below(2) == 0 ? "train" : "serve", below(6) == 0 ? " array=0-5" : ""));
  }

  // Cancels a running job, or changes the time limit of one that waits.
  void change() {
    std::vector<std::string> queued, placed;
    state().jobs.walk(JobId{}, [&](const Job& job) {
      if (job.phase == Phase::queued && !job.is_array()) queued.push_back(display_id(state(), job));
      if (job.phase == Phase::running) placed.push_back(display_id(state(), job));
      return true;
    });
    if (below(2) == 0 && !queued.empty())
      run(fmt::format("update admin {} time={}m", queued[below(queued.size())], 1 + below(900)));
    else if (!placed.empty())
      run("cancel admin " + placed[below(placed.size())]);
  }

  void answer_starts() {
    std::vector<std::pair<std::string, std::string>> fresh;
    state().jobs.walk(JobId{}, [&](const Job& job) {
      if (job.phase != Phase::starting || ends_.contains(job.id)) return true;
      const Duration limit = *time_limit_of(state(), job);
      const Duration runs = below(3) == 0 ? Duration{std::int64_t{below(1000)} * limit.us / 1000}
                                          : limit + seconds(below(31));
      ends_[job.id] = world_.now() + runs;
      worst_ = std::max(worst_, *job.active->bill.most);
      fresh.emplace_back(state().node(job.active->nodes.front().grant.node).name,
                         display_id(state(), job));
      ++starts;
      return true;
    });
    for (const auto& [node, job] : fresh) run(fmt::format("{} started {}", node, job));
  }

  void end(JobId id) {
    ends_.erase(id);
    const Job* job = state().jobs.find(id);
    if (job == nullptr || !job->placed()) return;
    run(fmt::format("{} exit {}", state().node(job->active->nodes.front().grant.node).name,
                    display_id(state(), *job)));
  }

  // Moves the time on. A job that was told to end does so at its own time, or when kill_wait is
  // over.
  void forward(Duration length) {
    const Instant until = world_.now() + length;
    while (true) {
      std::optional<std::pair<Instant, JobId>> next;
      for (const auto& [id, at] : ends_) {
        Instant due = at;
        const Job* job = state().jobs.find(id);
        if (job != nullptr && job->phase == Phase::finishing)
          due = std::min(due, job->active->finish->since + seconds(30));
        if (!next || due < next->first) next = {due, id};
      }
      const Instant stop = next && next->first < until ? next->first : until;
      if (stop > world_.now())
        run(fmt::format("advance {}s", std::max<std::int64_t>(1, (stop - world_.now()).seconds())));
      check();
      if (!next || next->first > world_.now()) return;
      end(next->second);
      run("plan");
      answer_starts();
    }
  }

  void check() {
    for (const auto& [name, stand] : stands_of(state(), world_.now())) {
      const BudgetAccount& account = state().budgets.accounts.at(name);
      CHECK_MESSAGE(stand.spent <= amount_of(account) + worst_,
                    fmt::format("{}: {} spent", name, format_money(stand.spent)));
      CHECK_MESSAGE(stand.spent + stand.reserved <= amount_of(account) + worst_,
                    fmt::format("{}: {} spent, {} set aside", name, format_money(stand.spent),
                                format_money(stand.reserved)));
    }
    state().jobs.walk(JobId{}, [&](const Job& job) {
      const bool told = world_.core().runtime().plan->marks.at(job.id).told.startable > 0;
      if (job.phase == Phase::queued && !told && job.hold == Hold::none) ++waited;
      return true;
    });
  }

  World world_;
  std::mt19937 random_;
  std::map<JobId, Instant> ends_;  // the time at which each job ends by itself
  Money worst_;                    // the highest possible cost of any job so far
};

}  // namespace

TEST_CASE("a budget is never overrun by more than one job's worst case, whatever is submitted") {
  std::uint32_t starts = 0, waited = 0;
  for (std::uint32_t seed = 1; seed <= kPatterns; ++seed) {
    CAPTURE(seed);
    Crowd crowd(seed);
    for (int i = 0; i < kSteps; ++i) crowd.step();
    crowd.finish();
    starts += crowd.starts;
    waited += crowd.waited;
  }
  CHECK(starts > 10 * kPatterns);
  CHECK(waited > 100 * kPatterns);
}

TEST_CASE("there is no forecast before charges of three days are known") {
  World world;
  for (const char* command :
       {"cluster n1 cpus=8 mem=8G", "set heartbeat=10m node_timeout=1h", "up n1", "quiet",
        "tenant fraud cpu=8 user=alice", "prices base cpu=1.00",
        "budget month tenant=fraud amount=5000 at=warn", "apply admin",
        "submit alice name=a cpus=1 time=2h", "plan", "n1 started 1", "advance 60s", "n1 exit 1"})
    world.run(command);
  const auto stand = [&] { return stands_of(world.core().state(), world.now()).at("month"); };
  CHECK(stand().spent > Money{});
  CHECK(stand().little_history);
  CHECK(stand().forecast == stand().spent);
  world.run("advance 71h");
  CHECK(stand().little_history);
  world.run("advance 2h");
  CHECK_FALSE(stand().little_history);
  // One minute in three days; the minute's own pace would give 44,640 times the cost.
  CHECK(stand().forecast.micros <= stand().spent.micros * 11);
}

TEST_CASE("the forecast for a steady load is within 10 % of the real cost") {
  World world;
  for (const char* command :
       {"cluster n1 cpus=8 mem=8G", "set heartbeat=10m node_timeout=1h", "up n1", "quiet",
        "tenant fraud cpu=8 user=alice", "prices base cpu=1.00",
        "budget month tenant=fraud amount=5000 at=warn", "apply admin"})
    world.run(command);
  std::uint64_t job = 0;
  // one job has 2 cores for an hour, the other has 4 cores for half an hour
  const auto hour = [&] {
    world.run("submit alice name=a cpus=2 time=2h");
    world.run("submit alice name=b cpus=4 time=2h");
    world.run("plan");
    const std::uint64_t first = ++job, second = ++job;
    world.run(fmt::format("n1 started {}", first));
    world.run(fmt::format("n1 started {}", second));
    world.run("advance 1800s");
    world.run(fmt::format("n1 exit {}", second));
    world.run("advance 1800s");
    world.run(fmt::format("n1 exit {}", first));
  };
  const auto stand = [&] { return stands_of(world.core().state(), world.now()).at("month"); };
  std::vector<Money> forecasts;
  for (int i = 0; i < 31 * 24 - 1; ++i) {
    hour();
    if (i == 3 * 24 + 1 || i == 5 * 24 || i == 10 * 24 + 7 || i == 25 * 24)
      forecasts.push_back(stand().forecast);
  }
  const Money spent = stand().spent;
  CHECK(spent == Money{(31 * 24 - 1) * 4 * kMoneyUnit});
  REQUIRE(forecasts.size() == 4);
  for (const Money forecast : forecasts) {
    CAPTURE(format_money(forecast));
    CHECK(forecast.micros >= spent.micros / 10 * 9);
    CHECK(forecast.micros <= spent.micros / 10 * 11);
  }
}
