// The costs of a plan: a full pass over many classes on a large cluster, the reaction to the end of
// one job with queues of different lengths, and the memory of a waiting job.
//
//   bench_sched [nodes [pending [classes]]]     defaults 10,000, 100,000, 2,000
#include <fmt/core.h>
#include <malloc.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <random>

#include "ctld/sched/cycle/schedule.h"

namespace gantry::sched {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

// CPU time of this thread. A plan waits for nothing, so this is its cost even if other programs
// run.
struct Clock {
  using time_point = double;
  static double now() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
  }
};

double micros_since(double start) {
  return Clock::now() - start;
}

struct Timing {
  double median = 0, p99 = 0;
};
Timing summary(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return {samples[samples.size() / 2], samples[samples.size() * 99 / 100]};
}

void row(std::string_view what, const Timing& t, std::string_view note) {
  fmt::print("{:<58} {:>11.1f} {:>11.1f}  {}\n", what, t.median, t.p99, note);
}

void add_cluster(Replica& replica, std::uint32_t nodes, std::uint16_t cpus) {
  PartitionChanged partition;
  partition.name = "batch";
  for (std::uint32_t n = 0; n < nodes; ++n) {
    NodeChanged node;
    node.node = NodeId{n};
    node.name = fmt::format("n{:05}", n);
    node.available = true;
    for (std::uint16_t c = 0; c < cpus; ++c) node.cpus.push_back(c);
    node.memory = cpus * 4 * kGiB;
    node.gpus = 8;
    node.sockets = 2;
    node.features = n % 4 == 0 ? std::vector<std::string>{"fast"} : std::vector<std::string>{};
    replica.apply(node);
    partition.nodes.push_back(NodeId{n});
  }
  replica.apply(partition);
}

// Half of the classes want one node and up to 16 cores, a quarter want GPUs, and a quarter want 2
// to 64 nodes.
std::vector<ClassKey> random_classes(std::size_t count) {
  std::mt19937_64 random(7);
  const auto pick = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  std::vector<ClassKey> classes;
  for (std::size_t i = 0; i < count; ++i) {
    ClassKey key;
    // The time limit makes each class different from all others.
    key.time_limit = minutes(5 + static_cast<std::int64_t>(i));
    key.shape.cpus_per_task = 1 + pick(16);
    if (i % 4 == 1) key.shape.gpus_per_node = 1 + pick(8);
    if (i % 4 == 3) {
      key.shape.min_nodes = key.shape.max_nodes = 2u << pick(6);
      key.shape.tasks = key.shape.min_nodes * (1 + pick(4));
    }
    if (i % 8 == 0) key.shape.constraint = "fast";
    if (i % 3 == 0) key.shape.memory_per_cpu = (1 + pick(6)) * kGiB;
    classes.push_back(key);
  }
  return classes;
}

struct Load {
  Replica& replica;
  std::uint64_t next_job = 1;
  Instant now{seconds(1'000'000).us};
  std::vector<ClassKey> classes;
  std::unordered_map<JobId, std::size_t> waiting;  // the class of each waiting job
  std::deque<Change> running;  // the JobPlaced of each running job, oldest first

  void submit(std::size_t cls) {
    const JobId id{next_job++};
    replica.apply(
        JobQueued{id, classes[cls], 0, now + Duration{static_cast<std::int64_t>(id.value())}, 1});
    waiting[id] = cls;
  }
  void accept(const Plan& plan) {
    for (const Start& s : plan.starts) {
      const ClassKey& key = classes[waiting.at(s.job)];
      waiting.erase(s.job);
      replica.apply(JobUnqueued{s.job});
      const JobPlaced fact{s.job, s.grants, now + *key.time_limit, false};
      replica.apply(fact);
      running.emplace_back(fact);
    }
  }
  void end_oldest() {
    const JobPlaced job = std::get<JobPlaced>(running.front());
    running.pop_front();
    for (const NodeGrant& g : job.grants) replica.apply(NodeReleased{job.job, g.node});
  }
};

void full_pass(std::uint32_t nodes, std::size_t pending, std::size_t classes) {
  Replica replica;
  add_cluster(replica, nodes, 64);
  Load load{replica, 1, {seconds(1'000'000).us}, random_classes(classes), {}, {}};
  Policy policy;
  policy.depth = ~std::uint32_t{0};
  policy.starts = ~std::uint32_t{0};
  policy.attempts = ~std::uint64_t{0};
  std::mt19937_64 random(3);

  // The cluster is filled first, and then the queue is topped up.
  std::vector<double> filling;
  std::size_t started = 0;
  for (bool full = false; !full;) {
    for (std::size_t i = 0; i < pending / 4; ++i) load.submit(random() % classes);
    const auto start = Clock::now();
    const Plan plan = schedule(replica, load.now, policy);
    if (!plan.starts.empty())
      filling.push_back(micros_since(start) / static_cast<double>(plan.starts.size()));
    started += plan.starts.size();
    load.accept(plan);
    full = plan.starts.size() < pending / 4 / 20;
  }
  while (load.waiting.size() < pending) load.submit(random() % classes);
  row("start while the cluster fills, per job", summary(filling),
      fmt::format("{} running on {} nodes", load.running.size(), nodes));

  for (const std::uint32_t k : {1u, 100u}) {
    policy.reservations = k;
    load.accept(schedule(replica, load.now, policy));
    std::vector<double> idle, after_end;
    Plan plan;
    for (int i = 0; i < 21; ++i) {
      load.now = load.now + milliseconds(1);
      const auto start = Clock::now();
      plan = schedule(replica, load.now, policy);
      idle.push_back(micros_since(start));
      load.accept(plan);
    }
    const std::string note =
        fmt::format("{} classes, {} pending, {} attempts, {} ends walked", plan.stats.classes,
                    load.waiting.size(), plan.stats.attempts, plan.stats.steps);
    row(fmt::format("full pass, nothing to start, {} reservation{}", k, k > 1 ? "s" : ""),
        summary(idle), note);
    std::size_t starts = 0;
    for (int i = 0; i < 21; ++i) {
      for (int j = 0; j < 100; ++j) load.end_oldest();
      load.now = load.now + milliseconds(1);
      const auto start = Clock::now();
      plan = schedule(replica, load.now, policy);
      after_end.push_back(micros_since(start));
      starts += plan.starts.size();
      load.accept(plan);
      while (load.waiting.size() < pending) load.submit(random() % classes);
    }
    row(fmt::format("full pass after 100 jobs ended, {} reservation{}", k, k > 1 ? "s" : ""),
        summary(after_end), fmt::format("{} starts each", starts / 21));
  }
  policy.reservations = 1;
  policy.estimates = 100;
  std::vector<double> estimated;
  for (int i = 0; i < 11; ++i) {
    const auto start = Clock::now();
    (void)schedule(replica, load.now, policy);
    estimated.push_back(micros_since(start));
  }
  row("full pass with expected starts for 100 blocked jobs", summary(estimated), "");
}

void reaction(std::uint32_t nodes, std::size_t pending, std::size_t classes,
              std::uint32_t estimates) {
  Replica replica;
  add_cluster(replica, nodes, 64);
  Load load{replica, 1, {seconds(1'000'000).us}, {}, {}, {}};
  for (std::size_t c = 0; c < classes; ++c) {
    ClassKey key;
    key.time_limit = minutes(10 + static_cast<std::int64_t>(c));
    load.classes.push_back(key);
  }
  Policy policy;
  policy.starts = ~std::uint32_t{0};
  policy.attempts = ~std::uint64_t{0};
  for (std::size_t i = 0; i < nodes * 64; ++i) load.submit(i % classes);
  load.accept(schedule(replica, load.now, policy));
  while (load.waiting.size() < pending) load.submit(load.next_job % classes);
  policy.estimates = estimates;
  std::vector<double> cycle, plans;
  for (int i = 0; i < 3001; ++i) {
    load.now = load.now + microseconds(100);
    const auto start = Clock::now();
    load.end_oldest();
    const auto planning = Clock::now();
    const Plan plan = schedule(replica, load.now, policy);
    plans.push_back(micros_since(planning));
    load.accept(plan);
    load.submit(load.next_job % classes);
    cycle.push_back(micros_since(start));
    if (plan.starts.size() != 1) fmt::print("unexpected: {} starts\n", plan.starts.size());
  }
  row(fmt::format("one end: plan alone, {} nodes, {} pending, {} classes{}", nodes, pending,
                  classes, estimates > 0 ? ", estimates" : ""),
      summary(plans), "");
  row("one end: release, plan, place, unqueue, queue another", summary(cycle), "");
}

void memory(std::size_t pending) {
  Replica replica;
  add_cluster(replica, 4, 64);
  const auto classes = random_classes(8);
  const std::size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
  const auto start = Clock::now();
  for (std::size_t i = 1; i <= pending; ++i)
    replica.apply(JobQueued{JobId{i}, classes[i % 8], 0, Instant{static_cast<std::int64_t>(i)}, 1});
  const double queue = micros_since(start) / static_cast<double>(pending);
  const std::size_t used = mallinfo2().uordblks + mallinfo2().hblkhd - before;
  fmt::print("{:<58} {:>11.1f} {:>11}  {} pending\n", "bytes per waiting job",
             static_cast<double>(used) / static_cast<double>(pending), "", pending);
  fmt::print("{:<58} {:>11.2f}\n", "queue one, in order", queue);
  std::mt19937_64 random(1);
  const auto again = Clock::now();
  for (std::size_t i = 0; i < pending; ++i) {
    const std::size_t job = 1 + random() % pending;
    replica.apply(JobQueued{JobId{job}, classes[job % 8], static_cast<std::int64_t>(random() % 100),
                            Instant{static_cast<std::int64_t>(job)}, 1});
  }
  fmt::print("{:<58} {:>11.2f}\n", "change the priority of a random one",
             micros_since(again) / static_cast<double>(pending));
}

}  // namespace
}  // namespace gantry::sched

int main(int argc, char** argv) {
  using namespace gantry::sched;
  const auto arg = [&](int i, std::size_t otherwise) {
    return argc > i ? static_cast<std::size_t>(std::strtoull(argv[i], nullptr, 10)) : otherwise;
  };
  fmt::print("{:<58} {:>11} {:>11}\n", "scheduler, microseconds of CPU", "median", "p99");
  full_pass(static_cast<std::uint32_t>(arg(1, 10'000)), arg(2, 100'000), arg(3, 2'000));
  reaction(100, 1'000, 4, 0);
  reaction(100, 100'000, 4, 0);
  reaction(100, 1'000'000, 4, 0);
  reaction(10'000, 1'000'000, 4, 0);
  reaction(100, 1'000'000, 4, 100);
  memory(1'000'000);
  return 0;
}
