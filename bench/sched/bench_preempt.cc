// The cost of a search for victims on a large cluster that is full.
//
//   bench_preempt [nodes]     default 10,000, of 8 GPUs
#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>

#include "ctld/sched/nodes/devices.h"
#include "ctld/sched/preempt/preempt.h"

namespace gantry::sched {
namespace {

constexpr std::uint32_t kTenants = 20;

double micros() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
}

FlavorLimits limits(std::int64_t gpus) {
  FlavorLimits l;
  l.nominal.fill(kUnlimited);
  l.borrow.fill(kUnlimited);
  l.lend.fill(kUnlimited);
  l.nominal[static_cast<std::size_t>(Resource::gpu)] = gpus * kGpuUnit;
  return l;
}

struct Cluster {
  Grid grid;
  Running running;
  Eligible eligible;
  std::unique_ptr<QuotaTree> quota;
  Instant now{hours(100).us};

  // Tenant 0 uses nothing of its quota, and the other tenants have borrowed it.
  explicit Cluster(std::uint32_t nodes) {
    auto tree = std::make_shared<Tenancy>();
    tree->flavors.push_back({});
    ClassView normal, high;
    high.value = 1000;
    high.preempts = true;
    tree->classes = {normal, high};
    QuotaNode root;
    root.limits = {limits(0)};
    tree->nodes.push_back(root);
    for (std::uint32_t t = 0; t < kTenants; ++t) {
      QuotaNode tenant;
      tenant.parent = 0;
      tenant.tenant = true;
      tenant.limits = {limits(std::int64_t{nodes} * 8 / kTenants)};
      tree->nodes.push_back(tenant);
    }
    quota = std::make_unique<QuotaTree>(std::move(tree));
    std::vector<NodeId> all;
    for (std::uint32_t n = 0; n < nodes; ++n) {
      NodeChanged node;
      node.node = NodeId{n};
      node.name = fmt::format("n{:05}", n);
      node.available = true;
      for (std::uint16_t c = 0; c < 64; ++c) node.cpus.push_back(c);
      node.memory = std::int64_t{1} << 40;
      node.gpus = 8;
      grid.change(node);
      eligible.node_changed(node);
      all.push_back(node.node);
    }
    for (std::uint32_t t = 0; t < kTenants; ++t) {
      PartitionChanged p;
      p.partition = PartitionId{t};
      p.nodes = all;
      p.quota_node = 1 + t;
      eligible.partition_changed(p);
    }
    fill(nodes);
  }

  void fill(std::uint32_t nodes) {
    std::mt19937_64 random(5);
    std::uint64_t id = 1;
    for (std::uint32_t n = 0; n < nodes; ++n)
      for (std::uint32_t left = 8; left > 0;) {
        JobPlaced job;
        job.job = JobId{id++};
        job.partition = PartitionId{1 + static_cast<std::uint32_t>(random() % (kTenants - 1))};
        job.started = now - minutes(static_cast<std::int64_t>(random() % 5000));
        NodeGrant g;
        g.node = NodeId{n};
        g.gpus = std::min(left, 1u << (random() % 4));
        g.cpus = choose_cpus(grid.node(n), static_cast<std::int32_t>(g.gpus * 8));
        left -= g.gpus;
        // Some jobs span two nodes.
        job.grants = {g};
        if (g.gpus == 8 && n + 1 < nodes && grid.idle(n + 1) && random() % 2 == 0) {
          g.node = NodeId{n + 1};
          g.cpus = choose_cpus(grid.node(n + 1), 64);
          job.grants.push_back(g);
        }
        running.place(job, grid);
        quota->add(1 + job.partition.value(), use_of(job));
        while (left == 0 && n + 1 < nodes && !grid.idle(n + 1)) ++n;
      }
  }

  static QuotaNeed use_of(const JobPlaced& job) {
    QuotaNeed need;
    for (const NodeGrant& g : job.grants) {
      need.amount.row(Resource::gpu) += std::int64_t{g.gpus} * kGpuUnit;
      need.amount.row(Resource::cpu) += static_cast<std::int64_t>(g.cpus.size()) * 1000;
    }
    return need;
  }

  void ask(const char* what, std::uint32_t tenant, std::uint32_t nodes, std::uint32_t gpus,
           std::uint32_t priority_class) {
    JobClass cls;
    JobShape& s = cls.key.shape;
    s.min_nodes = s.max_nodes = s.tasks = nodes;
    s.cpus_per_task = 8;
    s.gpus_per_node = gpus;
    s.memory_per_node = 1;
    cls.key.partition = PartitionId{tenant};
    cls.key.priority_class = priority_class;
    cls.demand = demand_of(s, *eligible.partition(cls.key.partition));
    eligible.refresh(cls, grid);
    QuotaNeed need;
    need.amount.row(Resource::gpu) = std::int64_t{gpus} * nodes * kGpuUnit;
    need.amount.row(Resource::cpu) = std::int64_t{8000} * nodes;
    std::vector<double> times;
    std::optional<VictimSet> set;
    for (int i = 0; i < 11; ++i) {
      const double start = micros();
      set = find_victims({.grid = grid,
                          .running = running,
                          .eligible = eligible,
                          .quota = *quota,
                          .cls = cls,
                          .choice = eligible.flavors_of(cls)[0],
                          .need = need,
                          .now = now});
      times.push_back(micros() - start);
    }
    std::sort(times.begin(), times.end());
    fmt::print("{:<48} {:>10.0f} {:>10.0f}  {}\n", what, times[times.size() / 2], times.back(),
               set ? fmt::format("{} victims", set->victims.size()) : "none found");
  }
};

}  // namespace
}  // namespace gantry::sched

int main(int argc, char** argv) {
  using namespace gantry::sched;
  const auto nodes =
      static_cast<std::uint32_t>(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 10'000);
  Cluster c(nodes);
  fmt::print("{} nodes, {} jobs running; microseconds of CPU\n", nodes, c.running.size());
  fmt::print("{:<48} {:>10} {:>10}\n", "search for victims", "median", "max");
  c.ask("reclaim, 1 GPU", 0, 1, 1, 0);
  c.ask("reclaim, 8 GPUs", 0, 1, 8, 0);
  c.ask("reclaim, 4 nodes of 8", 0, 4, 8, 0);
  c.ask("reclaim, 64 nodes of 8", 0, 64, 8, 0);
  c.ask("by class in the own tenant, 8 GPUs", 1, 1, 8, 1);
  c.ask("nobody to take from, 8 GPUs", 1, 1, 8, 0);
  return 0;
}
