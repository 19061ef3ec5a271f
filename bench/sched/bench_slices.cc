// The costs of slices in whole plans of the scheduler, as the controller makes them.
//
//   bench_slices [gpus] [waiting jobs]     default 1,000 and 10,000
//
// Nodes of 8 GPUs in MIG mode are filled from the queue. Then the same number of jobs wait again,
// of six profiles and several time limits. The bench measures the CPU time of the thread for the
// plans that fill the empty cluster, for a plan that can start nothing, and for plans after 50 jobs
// have ended.
#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "ctld/sched/cycle/schedule.h"
#include "tests/sched/mig/mig_world.h"

namespace gantry::sched {
namespace {

double millis() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

struct Load {
  Replica replica;
  Policy policy;
  Instant now{hours(1000).us};
  std::mt19937_64 random{1};
  std::vector<std::string> profiles;
  std::uint64_t last = 0;
  std::vector<std::pair<JobId, NodeId>> running;

  explicit Load(std::uint32_t gpus) {
    policy.keep_reservations = true;
    for (const MigProfile& p : h100_geometry().profiles)
      if (!p.name.ends_with("+me")) profiles.push_back(p.name);
    PartitionChanged partition;
    partition.name = "main";
    for (std::uint32_t n = 0; n < gpus / 8; ++n) {
      NodeChanged node;
      node.node = NodeId{n};
      node.name = "n" + std::to_string(n);
      node.available = true;
      for (std::uint16_t c = 0; c < 128; ++c) node.cpus.push_back(c);
      node.memory = std::int64_t{1} << 40;
      for (std::uint16_t g = 0; g < 8; ++g)
        node.devices.push_back({g, -1, true, "h100", {}, false, {}});
      node.geometries = {h100_geometry()};
      replica.apply(node);
      partition.nodes.push_back(node.node);
    }
    replica.apply(partition);
  }
  void submit() {
    JobQueued q;
    q.job = JobId{++last};
    q.key.shape.memory_per_node = 1 << 20;
    q.key.shape.gpus_per_node = 1;
    q.key.shape.gpu_slice = profiles[random() % profiles.size()];
    q.key.time_limit = hours(1 + static_cast<std::int64_t>(random() % 8));
    q.queued_since = now + microseconds(static_cast<std::int64_t>(last));
    replica.apply(q);
  }
  // Makes one plan. The result is the number of jobs that it started, and its time in ms.
  std::pair<std::size_t, double> plan() {
    const double before = millis();
    const Plan p = schedule(replica, now, policy);
    const double took = millis() - before;
    for (const Start& s : p.starts) {
      JobPlaced placed;
      placed.job = s.job;
      placed.grants = s.grants;
      placed.ends_by = now + hours(1 + static_cast<std::int64_t>(random() % 8));
      replica.apply(JobUnqueued{s.job});
      replica.apply(placed);
      running.emplace_back(s.job, s.grants[0].node);
    }
    return {p.starts.size(), took};
  }
};

void run(std::uint32_t gpus, std::uint32_t jobs) {
  Load load(gpus);
  for (std::uint32_t i = 0; i < jobs; ++i) load.submit();
  double most = 0, all = 0;
  for (;;) {
    const auto [starts, took] = load.plan();
    if (starts == 0) break;
    most = std::max(most, took);
    all += took;
  }
  fmt::print("{} GPUs filled with {} jobs: {:.1f} ms, the longest plan {:.1f} ms\n", gpus,
             load.running.size(), all, most);
  while (load.replica.waiting() < jobs) load.submit();
  const double none = load.plan().second;
  std::vector<double> times;
  std::size_t started = 0;
  for (int round = 0; round < 20; ++round) {
    load.now = load.now + seconds(30);
    for (int i = 0; i < 50; ++i) {
      std::swap(load.running[load.random() % load.running.size()], load.running.back());
      load.replica.apply(NodeReleased{load.running.back().first, load.running.back().second});
      load.running.pop_back();
    }
    const auto [starts, took] = load.plan();
    started += starts;
    times.push_back(took);
  }
  std::sort(times.begin(), times.end());
  fmt::print(
      "{} jobs wait: a plan that starts nothing {:.1f} ms; after 50 ends median {:.1f} ms, longest "
      "{:.1f} ms, {} started\n",
      load.replica.waiting(), none, times[times.size() / 2], times.back(), started);
}

}  // namespace
}  // namespace gantry::sched

int main(int argc, char** argv) {
  const auto number = [&](int i, std::uint32_t other) {
    return argc > i ? static_cast<std::uint32_t>(std::strtoul(argv[i], nullptr, 10)) : other;
  };
  gantry::sched::run(number(1, 1000), number(2, 10'000));
}
