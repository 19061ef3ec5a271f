#include "tests/sched/world.h"

#include <algorithm>

#include <fmt/core.h>

#include "ctld/sched/queue/constraint.h"

namespace gantry::sched {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

}  // namespace

World::World(std::uint64_t seed, WorldOptions options) : random_(seed), options_(options) {
  for (std::uint32_t n = 0; n < options_.nodes; ++n) nodes_.push_back(random_node(n));
  for (std::uint32_t p = 0; p < (options_.plain ? 1 : options_.partitions); ++p) {
    PartitionChanged partition;
    partition.partition = PartitionId{p};
    partition.name = fmt::format("p{}", p);
    partition.priority = options_.partitions - p;
    partition.default_memory_per_cpu = p == 0 ? 0 : kGiB;
    for (std::uint32_t n = 0; n < options_.nodes; ++n)
      if (options_.plain || p == 0 || chance(60)) partition.nodes.push_back(NodeId{n});
    partitions_.push_back(partition);
  }
}

NodeChanged World::random_node(std::uint32_t id) {
  NodeChanged node;
  node.node = NodeId{id};
  node.name = fmt::format("n{:02}", id);
  node.available = true;
  const std::uint64_t cpus = std::uint64_t{2} << pick(3);  // 2, 4 or 8 CPUs
  const std::uint64_t first = chance(20) ? 2 : 0;          // some CPUs are not for jobs
  for (std::uint64_t c = 0; c < cpus; ++c)
    node.cpus.push_back(static_cast<std::uint16_t>(first + c));
  node.memory = static_cast<std::int64_t>(cpus) * 2 * kGiB;
  node.scratch = 10 * kGiB;
  node.gpus = chance(30) ? 2 : 0;
  if (chance(50)) node.features.emplace_back("big");
  if (chance(50)) node.features.emplace_back("fast");
  node.sockets = chance(50) ? 2 : 1;
  return node;
}

JobShape World::random_shape() {
  JobShape s;
  s.min_nodes = chance(70) ? 1 : static_cast<std::uint32_t>(1 + pick(4));
  s.max_nodes = s.min_nodes + (chance(25) ? static_cast<std::uint32_t>(pick(4)) : 0);
  s.tasks =
      s.min_nodes * static_cast<std::uint32_t>(1 + pick(2)) + static_cast<std::uint32_t>(pick(2));
  s.cpus_per_task = static_cast<std::uint32_t>(1 + pick(3));
  if (chance(20)) s.tasks_per_node = static_cast<std::uint32_t>(1 + pick(3));
  if (chance(25))
    s.memory_per_node = static_cast<std::int64_t>(1 + pick(6)) * kGiB;
  else if (chance(25))
    s.memory_per_cpu = static_cast<std::int64_t>(1 + pick(3)) * kGiB;
  if (chance(15)) s.scratch_per_node = static_cast<std::int64_t>(1 + pick(8)) * kGiB;
  if (chance(10)) s.gpus_per_node = static_cast<std::uint32_t>(1 + pick(2));
  if (chance(20)) s.constraint = std::array{"big", "fast", "big&fast", "big|fast"}[pick(4)];
  if (chance(5)) s.required_nodes = {nodes_[pick(nodes_.size())].name};
  if (chance(10)) s.excluded_nodes = {nodes_[pick(nodes_.size())].name};
  s.exclusive = chance(10);
  return s;
}

Change World::submit() {
  JobQueued job;
  job.job = JobId{next_job_++};
  job.key.partition = partitions_[pick(partitions_.size())].partition;
  job.key.shape = random_shape();
  if (options_.plain || chance(90))
    job.key.time_limit = seconds(static_cast<std::int64_t>(10 + pick(20) * 10));
  job.priority = options_.plain ? 0 : static_cast<std::int64_t>(pick(3));
  job.rank = options_.ranks && chance(10) ? 1 : 0;
  job.queued_since = now;
  job.startable = chance(10) ? static_cast<std::uint32_t>(1 + pick(5)) : 1;
  waiting[job.job] = job;
  return job;
}

std::vector<Change> World::initial() {
  std::vector<Change> changes(nodes_.begin(), nodes_.end());
  changes.insert(changes.end(), partitions_.begin(), partitions_.end());
  return changes;
}

std::vector<Change> World::facts() const {
  std::vector<Change> changes(nodes_.begin(), nodes_.end());
  changes.insert(changes.end(), partitions_.begin(), partitions_.end());
  for (const auto& [id, job] : waiting) changes.emplace_back(job);
  for (const auto& [id, job] : placed) changes.emplace_back(job);
  return changes;
}

std::vector<Change> World::random_turn() {
  std::vector<Change> changes;
  const Instant then = now + seconds(static_cast<std::int64_t>(1 + pick(8)));
  now = not_beyond && *not_beyond > now ? std::min(then, *not_beyond) : then;
  for (auto it = placed.begin(); it != placed.end();) {
    JobPlaced& job = it->second;
    const bool over = job.ends_by && *job.ends_by <= now;
    if (!over && !chance(5)) {
      ++it;
      continue;
    }
    // A job releases its nodes one after the other, perhaps not all at once.
    const bool partly = !over && !options_.plain && job.grants.size() > 1 && chance(50);
    do {
      changes.emplace_back(NodeReleased{job.job, job.grants.back().node});
      job.grants.pop_back();
    } while (!partly && !job.grants.empty());
    it = job.grants.empty() ? placed.erase(it) : std::next(it);
  }
  for (std::uint64_t i = pick(4); i > 0; --i) changes.push_back(submit());
  if (!waiting.empty() && chance(10)) {
    const JobId job =
        std::next(waiting.begin(), static_cast<std::ptrdiff_t>(pick(waiting.size())))->first;
    waiting.erase(job);
    changes.emplace_back(JobUnqueued{job});
  }
  if (options_.losses && chance(8)) {
    NodeChanged& node = nodes_[pick(nodes_.size())];
    node.available = !node.available;
    changes.emplace_back(node);
  }
  if (options_.plain) return changes;
  if (chance(10)) {
    NodeChanged& node = nodes_[pick(nodes_.size())];
    node.available = !node.available;
    if (chance(20)) node.features = {"big"};
    changes.emplace_back(node);
  }
  if (!waiting.empty() && chance(10)) {
    JobQueued& job = waiting.begin()->second;
    job.priority = static_cast<std::int64_t>(pick(3));
    changes.emplace_back(job);
  }
  if (!placed.empty() && chance(10)) {
    JobPlaced& job = placed.begin()->second;
    job.ends_by = chance(30)
                      ? std::nullopt
                      : std::optional(now + seconds(static_cast<std::int64_t>(1 + pick(100))));
    changes.emplace_back(JobLimitChanged{job.job, job.ends_by});
  }
  return changes;
}

std::vector<Change> World::accept(const Plan& plan) {
  std::vector<Change> changes;
  for (const Start& start : plan.starts) {
    JobQueued& job = waiting.at(start.job);
    JobId id = start.job;
    if (job.startable > 1) id = JobId{next_job_++};  // a task of an array gets its own id
    JobPlaced fact{id, start.grants, std::nullopt, job.key.shape.exclusive};
    if (job.key.time_limit) fact.ends_by = now + *job.key.time_limit;
    if (--job.startable == 0) {
      waiting.erase(start.job);
      changes.emplace_back(JobUnqueued{start.job});
    } else {
      changes.emplace_back(job);
    }
    placed[id] = fact;
    changes.emplace_back(fact);
  }
  return changes;
}

bool World::may_use(const JobShape& shape, PartitionId partition, std::uint32_t n) const {
  const NodeChanged& node = nodes_[n];
  const auto& in = partitions_[partition.value()].nodes;
  const auto& no = shape.excluded_nodes;
  return node.available && std::find(in.begin(), in.end(), node.node) != in.end() &&
         matches(*parse_constraint(shape.constraint), node.features) &&
         std::find(no.begin(), no.end(), node.name) == no.end();
}

std::string World::check(const Plan& plan) const {
  std::vector<Room> free;
  std::vector<std::set<std::uint16_t>> taken(nodes_.size());
  for (const NodeChanged& node : nodes_) free.push_back(room_of(node));
  for (const auto& [id, job] : placed) {
    for (const NodeGrant& g : job.grants) {
      const std::uint32_t n = g.node.value();
      free[n] -= {g.memory, g.scratch, static_cast<std::int32_t>(g.cpus.size()),
                  static_cast<std::int32_t>(g.gpus)};
      taken[n].insert(g.cpus.begin(), g.cpus.end());
    }
  }
  std::map<JobId, std::uint32_t> elements;
  for (const Start& start : plan.starts) {
    if (!waiting.contains(start.job))
      return fmt::format("job {} is not waiting", start.job.value());
    if (++elements[start.job] > waiting.at(start.job).startable) return "an element too many";
    if (auto wrong = check_start(start, free, taken); !wrong.empty())
      return fmt::format("job {}: {}", start.job.value(), wrong);
  }
  return "";
}

std::string World::check_start(const Start& start, std::vector<Room>& free,
                               std::vector<std::set<std::uint16_t>>& taken) const {
  const JobQueued& job = waiting.at(start.job);
  const JobShape& s = job.key.shape;
  std::uint32_t tasks = 0;
  std::set<std::string> names;
  for (const NodeGrant& g : start.grants) {
    const std::uint32_t n = g.node.value();
    const NodeChanged& node = nodes_[n];
    if (!may_use(s, job.key.partition, n)) return "a node it may not use";
    if (!names.insert(node.name).second) return "a node twice";
    if (g.tasks == 0 || g.tasks > s.tasks_per_node.value_or(g.tasks)) return "tasks on a node";
    const std::size_t cpus =
        s.exclusive ? node.cpus.size() : std::size_t{g.tasks} * s.cpus_per_task;
    if (g.cpus.size() != cpus || g.cpus.size() < std::size_t{g.tasks} * s.cpus_per_task)
      return "number of CPUs";
    if (s.exclusive && !taken[n].empty()) return "not alone";
    for (const std::uint16_t c : g.cpus) {
      if (!std::binary_search(node.cpus.begin(), node.cpus.end(), c))
        return "a CPU the node has not";
      if (!taken[n].insert(c).second) return "a CPU given twice";
    }
    if (s.memory_per_node && g.memory != *s.memory_per_node) return "memory per node";
    if (s.memory_per_cpu && g.memory != *s.memory_per_cpu * g.tasks * s.cpus_per_task)
      return "memory per core";
    if (g.scratch != s.scratch_per_node || g.gpus != s.gpus_per_node) return "scratch or GPUs";
    free[n] -= {g.memory, g.scratch, static_cast<std::int32_t>(g.cpus.size()),
                static_cast<std::int32_t>(g.gpus)};
    if (free[n].memory < 0 || free[n].scratch < 0 || free[n].cpus < 0 || free[n].gpus < 0)
      return "a node is over-full";
    tasks += g.tasks;
  }
  if (tasks != std::max(s.tasks, s.min_nodes)) return "number of tasks";
  if (start.grants.size() < s.min_nodes || start.grants.size() > std::max(s.max_nodes, s.min_nodes))
    return "number of nodes";
  for (const std::string& name : s.required_nodes)
    if (!names.contains(name)) return "a required node is missing";
  return "";
}

std::string World::check_nothing_fits() const {
  std::vector<Room> free;
  for (const NodeChanged& node : nodes_) free.push_back(room_of(node));
  for (const auto& [id, job] : placed)
    for (const NodeGrant& g : job.grants)
      free[g.node.value()] -= {g.memory, g.scratch, static_cast<std::int32_t>(g.cpus.size()),
                               static_cast<std::int32_t>(g.gpus)};
  for (const auto& [id, job] : waiting) {
    const JobShape& s = job.key.shape;
    const Demand d = demand_of(s, partitions_[job.key.partition.value()]);
    if (d.max_nodes != 1) continue;
    for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
      if (!may_use(s, job.key.partition, n)) continue;
      if (!s.required_nodes.empty() && s.required_nodes[0] != nodes_[n].name) continue;
      if (tasks_fitting(d, room_of(nodes_[n]), free[n]) >= d.tasks)
        return fmt::format("job {} fits on {}", id.value(), nodes_[n].name);
    }
  }
  return "";
}

}  // namespace gantry::sched
