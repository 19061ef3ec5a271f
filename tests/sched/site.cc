#include "tests/sched/site.h"

#include "tests/sched/mig/mig_world.h"

namespace gantry::sched {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr std::uint32_t kUsers = 3;  // the users of each tenant, in two projects

}  // namespace

Site::Site(std::uint64_t seed, SiteOptions options) : random_(seed), options_(options) {
  tenants_ = 2 + static_cast<std::uint32_t>(pick(5));
  make_nodes();
  make_tenancy();
  for (std::uint32_t t = 0; t < tenants_; ++t) {
    PartitionChanged p;
    p.partition = PartitionId{t};
    p.name = fmt::format("t{}", t);
    p.priority = chance(20) ? 1 : 0;
    for (const NodeChanged& n : nodes_)
      if (chance(90)) p.nodes.push_back(n.node);
    if (p.nodes.empty()) p.nodes.push_back(nodes_[0].node);
    p.quota_node = chance(90) ? first_tenant_ + t : kNoIndex;
    partitions_.push_back(p);
  }
  for (std::uint32_t id = 0; id < tenants_ * (3 + kUsers); ++id) {
    ShareChanged s;
    s.share = ShareId{id};
    const std::uint32_t in = id % (3 + kUsers), base = id - in;
    if (in > 0) s.parent = ShareId{in < 3 ? base : base + 1 + in % 2};
    s.shares = 1 + static_cast<std::uint32_t>(pick(3));
    s.usage = {static_cast<double>(pick(4)) * 1000, 0, now};
    shares_[id] = s;
  }
}

std::vector<Change> Site::facts() const {
  std::vector<Change> all{TenancyChanged{tenancy_}};
  all.insert(all.end(), nodes_.begin(), nodes_.end());
  all.insert(all.end(), partitions_.begin(), partitions_.end());
  for (const auto& [id, s] : shares_) all.emplace_back(s);
  for (const auto& [name, r] : windows_) all.emplace_back(r);
  for (const auto& [id, job] : waiting) all.emplace_back(job);
  for (const auto& [id, job] : running) all.emplace_back(job);
  return all;
}

std::vector<Change> Site::turn() {
  std::vector<Change> changes;
  now = now + (chance(50) ? microseconds(static_cast<std::int64_t>(pick(5000)))
                          : milliseconds(static_cast<std::int64_t>(pick(9000))));
  for (auto it = running.begin(); it != running.end();) {
    const bool over = it->second.ends_by && *it->second.ends_by <= now && chance(80);
    if (!over && !chance(4)) {
      ++it;
      continue;
    }
    NodeGrant grant = it->second.grants.back();
    changes.emplace_back(NodeReleased{it->first, grant.node});
    it->second.grants.pop_back();
    if (!it->second.grants.empty()) continue;
    charge(it->second, -1, changes);
    it = running.erase(it);
  }
  for (std::uint64_t i = pick(3); i > 0; --i) submit(changes);
  if (chance(15)) change_waiting(changes);
  if (chance(10)) change_running(changes);
  if (chance(2)) change_window(changes);
  if (chance(2)) {
    NodeChanged& node = nodes_[pick(nodes_.size())];
    node.available = !node.available || chance(30);
    changes.emplace_back(node);
  }
  return changes;
}

std::vector<Change> Site::accept(const Plan& plan) {
  std::vector<Change> changes;
  for (const Start& s : plan.starts) {
    if (chance(5)) continue;  // the core would refuse this
    JobQueued& job = waiting.at(s.job);
    JobPlaced fact;
    fact.job = job.startable > 1 ? JobId{1'000'000 + next_job_++} : s.job;
    fact.grants = s.grants;
    if (job.key.time_limit) fact.ends_by = now + *job.key.time_limit;
    fact.exclusive = job.key.shape.exclusive;
    fact.partition = job.key.partition;
    fact.priority_class = job.key.priority_class;
    fact.rank = 500;
    fact.share = job.share;
    fact.started = now;
    fact.sharing = job.key.shape.sharing;
    fact.anti_affinity = job.key.shape.anti_affinity;
    if (job.startable > 1) {
      --job.startable;
      changes.emplace_back(job);
    } else {
      waiting.erase(s.job);
      changes.emplace_back(JobUnqueued{s.job});
    }
    changes.emplace_back(fact);
    charge(fact, 1, changes);
    running[fact.job] = fact;
  }
  for (const Preempt& p : plan.preemptions)
    if (const auto victim = running.find(p.victim); victim != running.end() && chance(90)) {
      victim->second.leaving = true;
      victim->second.ends_by = now + seconds(35);
      changes.emplace_back(victim->second);
    }
  return changes;
}

void Site::make_nodes() {
  const std::uint64_t count = 3 + pick(6);
  for (std::uint32_t n = 0; n < count; ++n) {
    NodeChanged node;
    node.node = NodeId{n};
    node.name = fmt::format("n{}", n);
    node.available = true;
    node.gpus = chance(70) ? 4 : 0;
    for (std::uint16_t c = 0; c < 8; ++c) node.cpus.push_back(c);
    node.memory = 32 * kGiB;
    node.flavor = chance(60) ? 1 : 2;
    node.gpu_model = node.flavor == 1 ? "a100" : "t4";
    node.domains = {n / 3};
    if (options_.slices && chance(50)) cut_gpus(node);
    nodes_.push_back(node);
  }
}

void Site::make_tenancy() {
  Tenancy t;
  t.flavors.resize(3);
  for (std::uint32_t f = 1; f < 3; ++f) t.flavors[f].charge.fill(0.001);
  t.classes.resize(2);
  for (ClassView& c : t.classes) c.grace = seconds(30);
  t.classes[1].value = 1000;
  t.classes[1].preempts = true;
  t.levels.push_back({"rack", {"r0", "r1", "r2"}});
  t.half_life = chance(50) ? minutes(10) : hours(7 * 24);
  const std::uint32_t cohorts = static_cast<std::uint32_t>(pick(3));
  first_tenant_ = 1 + cohorts;
  for (std::uint32_t n = 0; n < first_tenant_ + tenants_; ++n) {
    QuotaNode node;
    node.name = fmt::format("q{}", n);
    if (n > 0) node.parent = n > cohorts ? static_cast<std::uint32_t>(pick(1 + cohorts)) : 0;
    node.tenant = n > cohorts;
    if (node.tenant && chance(20)) node.max_running = static_cast<std::uint32_t>(1 + pick(4));
    FlavorLimits limits;
    limits.nominal.fill(kUnlimited);
    limits.borrow.fill(kUnlimited);
    limits.lend.fill(kUnlimited);
    node.limits.assign(3, limits);
    if (chance(80)) {
      const auto gpu = static_cast<std::size_t>(Resource::gpu);
      node.limits[0].nominal[gpu] = node.tenant ? 1000 * static_cast<std::int64_t>(pick(9)) : 2000;
      if (chance(40)) node.limits[0].borrow[gpu] = 1000 * static_cast<std::int64_t>(pick(9));
      if (chance(30)) node.limits[0].lend[gpu] = 1000 * static_cast<std::int64_t>(pick(5));
      if (chance(30)) node.limits[1].nominal[gpu] = 1000 * static_cast<std::int64_t>(pick(9));
    }
    t.nodes.push_back(std::move(node));
  }
  tenancy_ = std::make_shared<const Tenancy>(std::move(t));
}

void Site::submit(std::vector<Change>& changes) {
  JobQueued job;
  job.job = JobId{next_job_++};
  const auto tenant = static_cast<std::uint32_t>(pick(tenants_));
  job.key.partition = PartitionId{tenant};
  JobShape& s = job.key.shape;
  s.cpus_per_task = static_cast<std::uint32_t>(1 + pick(4));
  if (chance(50)) s.gpus_per_node = static_cast<std::uint32_t>(1 + pick(4));
  if (chance(25))
    s.min_nodes = s.max_nodes = s.tasks = static_cast<std::uint32_t>(2 + pick(2));
  else if (chance(25))
    s.max_nodes = s.tasks = static_cast<std::uint32_t>(2 + pick(3));
  if (chance(30)) s.memory_per_node = static_cast<std::int64_t>(1 + pick(16)) * kGiB;
  if (chance(8)) s.gpu_models = {"a100", "t4"};
  if (chance(5)) s.exclusive = true;
  if (chance(2)) s.sharing = NodeSharing::same_user;
  if (chance(4)) s.anti_affinity = "key", s.anti_affinity_level = "node";
  if (chance(4)) s.topology = TopologyWish::required, s.topology_level = "rack";
  if (chance(3)) s.excluded_nodes = {nodes_[pick(nodes_.size())].name};
  if (!windows_.empty() && chance(5)) job.key.reservation = windows_.begin()->first;
  if (chance(90)) job.key.time_limit = seconds(static_cast<std::int64_t>(5 + pick(12) * 15));
  if (chance(10)) job.key.priority_class = 1;
  job.rank = 500 + static_cast<std::int32_t>(pick(3)) + (job.key.priority_class == 1 ? 500 : 0);
  job.priority = static_cast<std::int64_t>(pick(2));
  job.queued_since = now;
  job.startable = chance(10) ? static_cast<std::uint32_t>(1 + pick(4)) : 1;
  if (chance(90))
    job.share = ShareId{tenant * (3 + kUsers) + 3 + static_cast<std::uint32_t>(pick(kUsers))};
  if (options_.slices && chance(40)) ask_for_slices(job.key.shape);
  if (options_.groups && chance(12)) return submit_group(std::move(job), changes);
  waiting[job.job] = job;
  changes.emplace_back(job);
}

// Puts all GPUs of the node into MIG mode.
void Site::cut_gpus(NodeChanged& node) {
  node.gpus = 0;
  node.gpu_model = "h100";
  node.gpu_sharing = chance(50);
  const bool by_hand = chance(10);
  for (std::uint16_t g = 0; g < 3; ++g)
    node.devices.push_back({g, -1, true, "h100", {}, by_hand, {}});
  if (by_hand) node.devices[0].slices = {{14, 0, 1, 0, "a"}, {14, 2, 2, 0, "b"}, {9, 4, 3, 0, "c"}};
  node.geometries = {h100_geometry()};
}

void Site::ask_for_slices(JobShape& shape) {
  const std::array<const char*, 5> profiles{"1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"};
  shape.gpu_slice = profiles[pick(profiles.size())];
  shape.gpu_models = {"h100"};
  shape.gpus_per_node = 1;
  shape.exclusive = false;
  if (chance(75)) shape.min_nodes = shape.max_nodes = shape.tasks = 1;
  if (!chance(20)) return;
  shape.gpus_per_node = 0;
  shape.gpu_share = chance(50) ? 500 : 250;
}

// Submits two or three jobs of different sizes that start together.
void Site::submit_group(JobQueued job, std::vector<Change>& changes) {
  const auto size = static_cast<std::uint32_t>(2 + pick(2));
  job.startable = 1;
  const JobId leader = job.job;
  for (std::uint32_t i = 0; i < size; ++i) {
    job.job = JobId{leader.value() + i};
    job.key.het = HetPart{leader, i, size};
    if (i > 0) job.key.shape.cpus_per_task = static_cast<std::uint32_t>(1 + pick(4));
    waiting[job.job] = job;
    changes.emplace_back(job);
  }
  next_job_ = leader.value() + size;
}

void Site::change_waiting(std::vector<Change>& changes) {
  if (waiting.empty()) return;
  const auto it = std::next(waiting.begin(), static_cast<std::ptrdiff_t>(pick(waiting.size())));
  if (chance(50)) {
    it->second.rank += static_cast<std::int32_t>(pick(3));
    changes.emplace_back(it->second);
  } else {
    changes.emplace_back(JobUnqueued{it->first});
    waiting.erase(it);
  }
}

void Site::change_running(std::vector<Change>& changes) {
  if (running.empty()) return;
  const auto it = std::next(running.begin(), static_cast<std::ptrdiff_t>(pick(running.size())));
  it->second.ends_by = now + seconds(static_cast<std::int64_t>(pick(200)));
  changes.emplace_back(JobLimitChanged{it->first, it->second.ends_by});
}

void Site::change_window(std::vector<Change>& changes) {
  ReservationChanged& r = windows_[chance(50) ? "night" : "course"];
  r.name = windows_.begin()->second.name.empty() ? windows_.begin()->first : r.name;
  for (auto& [name, window] : windows_) window.name = name;
  r.nodes = {nodes_[pick(nodes_.size())].node};
  r.from = now + seconds(static_cast<std::int64_t>(pick(60)));
  r.until = r.from + seconds(static_cast<std::int64_t>(10 + pick(60)));
  r.later.clear();
  for (std::int64_t again = 1; again <= 2 && chance(30); ++again)  // the reservation recurs
    r.later.push_back({r.from + seconds(80 * again), r.until + seconds(80 * again)});
  changes.emplace_back(r);
}

void Site::charge(const JobPlaced& job, double sign, std::vector<Change>& changes) {
  if (!job.share) return;
  for (std::optional<ShareId> id = job.share; id; id = shares_.at(id->value()).parent) {
    ShareChanged& s = shares_.at(id->value());
    advance(s.usage, now, tenancy_->half_life);
    s.usage.rate = std::max(0.0, s.usage.rate + sign * 0.5);
    changes.emplace_back(s);
  }
}

}  // namespace gantry::sched
