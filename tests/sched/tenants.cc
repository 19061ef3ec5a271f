#include "tests/sched/tenants.h"
#include "ctld/sched/nodes/devices.h"

#include <algorithm>
#include <numeric>

namespace gantry::sched {
namespace {

constexpr auto kGpu = static_cast<std::size_t>(Resource::gpu);

FlavorLimits unlimited() {
  FlavorLimits limits;
  limits.nominal.fill(kUnlimited);
  limits.borrow.fill(kUnlimited);
  limits.lend.fill(kUnlimited);
  return limits;
}

}  // namespace

Tenants::Tenants(std::uint64_t seed, TenantsOptions options) : random_(seed), options_(options) {
  auto tree = std::make_shared<Tenancy>();
  const std::uint32_t flavors = options_.flavors ? 1 + static_cast<std::uint32_t>(pick(3)) : 1;
  for (std::uint32_t f = 0; f < flavors; ++f) tree->flavors.push_back({f == 0 ? "" : "f", {}});
  for (const int value : {500, 100, 500, 1000, 2000}) {
    ClassView c;
    c.value = options_.one_class ? 500 : value;
    c.preempts = value >= 1000;
    if (!options_.any_victim) {
      c.preemptible = value < 2000 && chance(85);
      c.min_run_time = chance(30) ? minutes(30) : Duration{};
      if (chance(30)) c.max_preemptions = static_cast<std::uint32_t>(pick(3));
    }
    c.grace = seconds(static_cast<std::int64_t>(pick(100)));
    tree->classes.push_back(c);
  }
  std::int64_t capacity = 0;
  for (std::uint32_t n = 0; n < (options_.single ? 24u : options_.large ? 10u : 6u); ++n) {
    NodeChanged node;
    node.node = NodeId{n};
    node.name = "n" + std::to_string(n);
    node.available = options_.guaranteed || chance(95);
    node.gpus = options_.single ? 1 : options_.large ? 8 : 4u << pick(2);
    for (std::uint16_t c = 0; c < 2 * node.gpus; ++c) node.cpus.push_back(c);
    node.memory = std::int64_t{1} << 30;
    node.flavor = flavors > 1 ? 1 + static_cast<std::uint32_t>(pick(flavors - 1)) : 0;
    capacity += node.gpus;
    nodes.push_back(node);
    grid.change(node);
    eligible.node_changed(node);
  }
  make_tree(*tree, capacity);
  for (const PartitionChanged& p : partitions) eligible.partition_changed(p);
  quota = std::make_unique<QuotaTree>(std::move(tree));
}

FlavorLimits Tenants::random_limits(bool tenant) {
  FlavorLimits limits = unlimited();
  // the tenant has no quota for this resource
  if (!options_.guaranteed && tenant && chance(15)) return limits;
  limits.nominal[kGpu] = tenant ? static_cast<std::int64_t>(pick(10)) * kGpuUnit : 0;
  if (options_.lending && chance(30))
    limits.borrow[kGpu] = static_cast<std::int64_t>(pick(12)) * kGpuUnit;
  if (options_.lending && chance(30))
    limits.lend[kGpu] = static_cast<std::int64_t>(pick(6)) * kGpuUnit;
  return limits;
}

// Makes a root, up to three cohorts in it or in each other, and the tenants.
void Tenants::make_tree(Tenancy& tree, std::int64_t capacity) {
  const std::uint32_t cohorts = options_.large ? 1 : 1 + static_cast<std::uint32_t>(pick(4));
  for (std::uint32_t i = 0; i < cohorts + options_.tenants; ++i) {
    QuotaNode node;
    node.name = (i < cohorts ? "cohort" : "tenant") + std::to_string(i);
    if (i > 0) node.parent = static_cast<std::uint32_t>(pick(std::min(i, cohorts)));
    node.tenant = i >= cohorts;
    node.weight = chance(20) ? 2000 : 1000;
    if (!options_.guaranteed)
      node.reclaim = std::array{tenancy::Reclaim::any, tenancy::Reclaim::any,
                                tenancy::Reclaim::lower, tenancy::Reclaim::never}[pick(4)];
    for (std::size_t f = 0; f < tree.flavors.size(); ++f) {
      node.limits.push_back(random_limits(node.tenant));
      // If there are flavors, quota is given for each of them, and not for all of them together.
      if (f == 0 && tree.flavors.size() > 1) node.limits[0] = unlimited();
    }
    if (i == 0) node.limits[0].borrow.fill(kUnlimited);
    tree.nodes.push_back(node);
  }
  if (options_.guaranteed) {  // all quota is divided among the tenants
    std::int64_t left = capacity;
    for (std::uint32_t i = cohorts; i < cohorts + options_.tenants; ++i) {
      const bool last = i + 1 == cohorts + options_.tenants;
      const std::int64_t part =
          last ? left : static_cast<std::int64_t>(pick(static_cast<std::uint64_t>(left) + 1));
      tree.nodes[i].limits[0].nominal[kGpu] = part * kGpuUnit;
      left -= part;
    }
  }
  for (std::uint32_t i = 0; i < options_.tenants; ++i) {
    PartitionChanged p;
    p.partition = PartitionId{i};
    p.name = "p" + std::to_string(i);
    if (options_.quota && (options_.guaranteed || chance(90))) p.quota_node = cohorts + i;
    for (const NodeChanged& node : nodes) p.nodes.push_back(node.node);
    partitions.push_back(p);
  }
}

JobPlaced Tenants::random_job() {
  JobPlaced job;
  job.job = JobId{next_job_++};
  job.partition = PartitionId{static_cast<std::uint32_t>(pick(options_.tenants))};
  job.priority_class = static_cast<std::uint32_t>(pick(5));
  job.started = now - minutes(static_cast<std::int64_t>(pick(300)));
  if (chance(40)) job.checkpoint = job.started + (now - job.started) * 1 - minutes(1);
  job.preemptions = static_cast<std::uint32_t>(pick(4));
  job.requeue = chance(80);
  const std::uint64_t count = options_.single ? 1 + pick(6) : chance(70) ? 1 : 1 + pick(3);
  if (options_.large) {
    constexpr std::uint32_t kSizes[] = {1, 1, 1, 1, 1, 1, 2, 2, 4, 8, 16, 24, 32};
    const std::uint32_t gpus = kSizes[pick(std::size(kSizes))];
    NodeGrant part;
    part.gpus = std::min(gpus, 8u);
    part.tasks = 1;
    part.cpus.resize(part.gpus);
    job.grants.assign((gpus + 7) / 8, part);
    return job;
  }
  NodeGrant grant;
  grant.gpus = options_.single ? 1 : static_cast<std::uint32_t>(1 + pick(4));
  if (!options_.single && chance(15)) grant.gpus = 0;
  grant.tasks = 1;
  grant.cpus.resize(options_.single ? 1 : 1 + pick(4));
  job.grants.assign(count, grant);
  return job;
}

bool Tenants::start(JobPlaced job) {
  const std::uint32_t flavors = static_cast<std::uint32_t>(quota->tenancy().flavors.size());
  const auto cpus = static_cast<std::int32_t>(job.grants[0].cpus.size());
  const std::uint64_t first = pick(flavors);
  for (std::uint32_t i = 0; i < flavors; ++i) {
    std::vector<std::uint32_t> on;
    const std::size_t from = options_.large ? pick(nodes.size()) : 0;
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      const NodeChanged& node = nodes[(from + k) % nodes.size()];
      const std::uint32_t n = node.node.value();
      if (on.size() == job.grants.size() || node.flavor != (first + i) % flavors) continue;
      if (grid.available(n) && grid.free(n).cpus >= cpus &&
          grid.free(n).gpus >= static_cast<std::int32_t>(job.grants[0].gpus))
        on.push_back(n);
    }
    if (on.size() < job.grants.size()) continue;
    for (std::size_t k = 0; k < on.size(); ++k) {
      job.grants[k].node = NodeId{on[k]};
      job.grants[k].cpus = choose_cpus(grid.node(on[k]), cpus);
    }
    const std::uint32_t tenant = tenant_of(job);
    if (tenant != kNoIndex) {
      if (!quota->fit(tenant, use_of(job)).fits) continue;
      quota->add(tenant, use_of(job));
    }
    running.place(job, grid);
    jobs[job.job] = job;
    return true;
  }
  return false;
}

void Tenants::stop(JobId id) {
  const JobPlaced job = jobs.at(id);
  if (tenant_of(job) != kNoIndex) quota->remove(tenant_of(job), use_of(job));
  for (const NodeGrant& g : job.grants) running.release(id, g.node, grid);
  jobs.erase(id);
}

void Tenants::fill() {
  for (int i = 0; i < 60; ++i) {
    JobPlaced job = random_job();
    job.leaving = chance(10);
    start(job);
  }
}

QuotaNeed Tenants::use_of(const JobPlaced& job) const {
  QuotaNeed need;
  need.flavor = nodes[job.grants[0].node.value()].flavor;
  for (const NodeGrant& g : job.grants) {
    need.amount.row(Resource::gpu) += std::int64_t{g.gpus} * kGpuUnit;
    need.amount.row(Resource::cpu) += static_cast<std::int64_t>(g.cpus.size()) * 1000;
    need.amount.row(Resource::memory) += g.memory;
  }
  return need;
}

Tenants::Asking Tenants::ask(const JobPlaced& job) {
  Asking asking;
  JobShape& shape = asking.cls.key.shape;
  shape.min_nodes = shape.max_nodes = shape.tasks = static_cast<std::uint32_t>(job.grants.size());
  shape.cpus_per_task = static_cast<std::uint32_t>(job.grants[0].cpus.size());
  shape.gpus_per_node = job.grants[0].gpus;
  shape.memory_per_node = 1;
  asking.cls.key.partition = job.partition;
  asking.cls.key.priority_class = job.priority_class;
  asking.cls.demand = demand_of(shape, partitions[job.partition.value()]);
  eligible.refresh(asking.cls, grid);
  const auto choices = eligible.flavors_of(asking.cls);
  asking.choice = choices[pick(choices.size())];
  asking.need.flavor = asking.choice.flavor;
  asking.need.amount.row(Resource::gpu) =
      std::int64_t{shape.gpus_per_node} * shape.min_nodes * kGpuUnit;
  asking.need.amount.row(Resource::cpu) =
      std::int64_t{shape.cpus_per_task} * 1000 * shape.min_nodes;
  return asking;
}

bool Tenants::has_room(const Asking& asking, const std::vector<JobId>& gone) const {
  std::vector<Room> room;
  for (std::uint32_t n = 0; n < nodes.size(); ++n) room.push_back(grid.free(n));
  for (const auto& [id, job] : jobs)
    if (job.leaving || std::find(gone.begin(), gone.end(), id) != gone.end())
      for (const NodeGrant& g : job.grants)
        room[g.node.value()] += {g.memory, g.scratch, static_cast<std::int32_t>(g.cpus.size()),
                                 static_cast<std::int32_t>(g.gpus)};
  std::uint32_t enough = 0;
  for (std::uint32_t n = 0; n < nodes.size(); ++n)
    if (nodes[n].available && eligible.nodes_of(asking.choice).test(n))
      enough += holds(asking.cls.demand, grid.room(n), room[n], 1) ? 1 : 0;
  return enough >= asking.cls.demand.min_nodes;
}

bool Tenants::has_quota(const Asking& asking, const std::vector<JobId>& gone) {
  const std::uint32_t tenant = partitions[asking.cls.key.partition.value()].quota_node;
  if (tenant == kNoIndex) return true;
  QuotaTree without(std::make_shared<const Tenancy>(quota->tenancy()));
  for (const auto& [id, job] : jobs)
    if (!job.leaving && std::find(gone.begin(), gone.end(), id) == gone.end() &&
        tenant_of(job) != kNoIndex)
      without.add(tenant_of(job), use_of(job));
  return without.fit(tenant, asking.need).fits;
}

}  // namespace gantry::sched
