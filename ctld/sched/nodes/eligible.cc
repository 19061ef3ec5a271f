#include "ctld/sched/nodes/eligible.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "common/text/hostlist.h"
#include "ctld/sched/queue/constraint.h"

namespace gantry::sched {

void Eligible::partition_changed(const PartitionChanged& partition) {
  const std::uint32_t id = partition.partition.value();
  if (partitions_.size() <= id) partitions_.resize(id + 1);
  partitions_[id] = partition;
  ++generation_;
}

void Eligible::node_changed(const NodeChanged& node) {
  node_by_name_[node.name] = node.node.value();
  ++generation_;
}

const PartitionChanged* Eligible::partition(PartitionId id) const {
  if (id.value() >= partitions_.size() || !partitions_[id.value()]) return nullptr;
  return &*partitions_[id.value()];
}

void Eligible::begin_plan() {
  if (sets_.size() < kMaxSets) return;
  sets_.clear();
  set_by_key_.clear();
  ++generation_;  // classes must not use the set numbers that they remember
}

void Eligible::refresh(JobClass& cls, const Grid& grid) {
  if (cls.standing.generation == generation_) return;
  const JobShape& shape = cls.key.shape;
  cls.node_set = set_for(
      {cls.key.partition, shape.constraint, shape.sandbox, shape.abilities, shape.excluded_nodes,
       shape.gpu_models, shape.tolerations, shape.gpus_per_node + shape.gpu_share > 0,
       shape.gpu_slice, shape.gpu_share > 0, std::nullopt},
      grid);
  cls.required.clear();
  for (const std::string& name : shape.required_nodes)
    if (const auto it = node_by_name_.find(name); it != node_by_name_.end())
      cls.required.push_back(it->second);
  std::sort(cls.required.begin(), cls.required.end());
  cls.choices = sets_[cls.node_set].choices;
  std::erase_if(cls.choices, [&](const NodeChoice& choice) {
    return !std::all_of(cls.required.begin(), cls.required.end(),
                        [&](std::uint32_t n) { return nodes_of(choice).test(n); });
  });
  set_least(cls);
  cls.standing = {generation_, stand(cls, grid)};
}

// Sets the least cores and memory where they depend on the node (whole nodes, memory that comes
// with the cores): by the smallest node that suffices.
void Eligible::set_least(JobClass& cls) const {
  const Demand& d = cls.demand;
  std::optional<Room> smallest;
  std::int64_t part = 0;  // of memory for each core
  for (const SizeCount& s : sets_[cls.node_set].sizes) {
    if (tasks_fitting(d, s.size, s.size) == 0) continue;
    const std::int64_t its_part = s.size.cpus > 0 ? s.size.memory / s.size.cpus : 0;
    part = smallest ? std::min(part, its_part) : its_part;
    if (!smallest) smallest = s.size;
    smallest->cpus = std::min(smallest->cpus, s.size.cpus);
    smallest->memory = std::min(smallest->memory, s.size.memory);
    smallest->gpus = std::min(smallest->gpus, s.size.gpus);
  }
  if (!smallest) return;
  std::int64_t cpus = d.least_cores();
  if (d.exclusive) cpus = std::max(cpus, std::int64_t{smallest->cpus} * d.min_nodes);
  cls.least.set<Resource::cpu>(thousandths_of(Cores{cpus}));
  if (d.all_gpus) {
    const std::int64_t gpus = std::max<std::int64_t>(smallest->gpus, d.gpus);
    cls.least.set<Resource::gpu>(thousandths_of(Gpus{gpus}) * Times{d.min_nodes});
  }
  if (d.memory_rule == MemoryRule::whole_node)
    cls.least.set<Resource::memory>(ByteCount{smallest->memory} * Times{d.min_nodes});
  if (d.memory_rule == MemoryRule::even_part)
    cls.least.set<Resource::memory>(ByteCount{part} * Times{cpus});
}

namespace {

// The place of a node's GPU model among the models that the class prefers; 0 if it names fewer than
// two.
std::uint32_t model_place(const std::vector<std::string>& models, const std::string& model) {
  if (models.size() < 2) return 0;
  return static_cast<std::uint32_t>(std::find(models.begin(), models.end(), model) -
                                    models.begin());
}

}  // namespace

std::uint32_t Eligible::set_for(const SetKey& key, const Grid& grid) {
  const auto [it, made] = set_by_key_.emplace(key, static_cast<std::uint32_t>(sets_.size()));
  if (made) sets_.emplace_back();
  const std::uint32_t index = it->second;
  if (sets_[index].generation != generation_) fill(index, key, grid);
  return index;
}

// Checks all rules except features, taints and flavor.
bool Eligible::admits(const SetKey& key, const Grid& grid, std::uint32_t n) {
  const GridNode& node = grid.node(n);
  if (node.gpu_jobs_only && !key.gpus) return false;
  if (!has_sandbox(key.sandbox, node.features)) return false;
  if (!has_abilities(key.abilities, node.features)) return false;
  if (key.shared && !node.gpu_sharing) return false;
  if (!key.slice.empty() && !grid.slices().on(n).has(key.slice)) return false;
  if (std::binary_search(key.excluded.begin(), key.excluded.end(), node.name)) return false;
  const auto& models = key.gpu_models;
  return models.empty() || std::find(models.begin(), models.end(), node.gpu_model) != models.end();
}

std::vector<std::string> Eligible::not_tolerated(const SetKey& key, const GridNode& node) {
  std::vector<std::string> missing;
  std::set_difference(node.taints.begin(), node.taints.end(), key.tolerations.begin(),
                      key.tolerations.end(), std::back_inserter(missing));
  return missing;
}

void Eligible::count(NodeSet& set, std::uint32_t n, const Grid& grid) {
  set.nodes.set(n);
  const Room well = grid.well_room(n);
  auto it = std::find_if(set.sizes.begin(), set.sizes.end(), [&](const SizeCount& s) {
    return s.size == grid.room(n) && s.well == well;
  });
  if (it == set.sizes.end()) it = set.sizes.insert(it, SizeCount{grid.room(n), well});
  ++it->all;
  it->available += grid.available(n) ? 1 : 0;
}

void Eligible::fill(std::uint32_t index, const SetKey& key, const Grid& grid) {
  NodeSet set;
  set.generation = generation_;
  set.nodes.resize(grid.size());
  const PartitionChanged* p = partition(key.partition);
  const auto constraint = parse_constraint(key.constraint);
  std::vector<std::string> unavailable;
  std::set<std::string> taints;
  std::set<std::pair<std::uint32_t, std::uint32_t>> choices;
  const std::size_t count_of_nodes = p != nullptr && constraint ? p->nodes.size() : 0;
  for (std::size_t i = 0; i < count_of_nodes; ++i) {
    const std::uint32_t n = p->nodes[i].value();
    if (n >= grid.size() || !grid.node(n).known || set.nodes.test(n)) continue;
    const GridNode& node = grid.node(n);
    if (!matches(*constraint, node.features) || !admits(key, grid, n)) continue;
    if (const auto missing = not_tolerated(key, node); !missing.empty()) {
      taints.insert(missing.begin(), missing.end());
      continue;
    }
    const std::pair choice{model_place(key.gpu_models, node.gpu_model), node.flavor};
    if (key.choice && choice != *key.choice) continue;
    choices.insert(choice);
    count(set, n, grid);
    const bool lacks = !grid.available(n) || grid.room(n) != grid.well_room(n);  // GPUs count too
    if (lacks && unavailable.size() < kMaxNamedNodes) unavailable.push_back(node.name);
  }
  set.unavailable = compress_hostlist(unavailable);
  set.taints = fmt::format("{}", fmt::join(taints, ","));
  // Each choice is also a set, so that what is known of sets is also known of choices.
  for (const auto& choice : choices) {
    std::uint32_t its_set = index;
    if (choices.size() > 1) {
      SetKey its_key = key;
      its_key.choice = choice;
      its_set = set_for(its_key, grid);
    }
    set.choices.push_back({choice.second, its_set});
  }
  sets_[index] = std::move(set);
}

Verdict Eligible::stand(const JobClass& cls, const Grid& grid) const {
  const PartitionChanged* p = partition(cls.key.partition);
  if (p == nullptr)
    return {Reason::partition_down, 0, 0, fmt::format("{}", cls.key.partition.value())};
  if (!p->up) return {Reason::partition_down, 0, 0, p->name};
  if (Verdict v = stand_required(cls, grid); v.reason != Reason::none) return v;
  if (could_hold(cls, grid, true))
    return cls.key.shape.topology == TopologyWish::required ? stand_in_domain(cls, grid)
                                                            : Verdict{};
  if (could_hold(cls, grid, false))
    return {Reason::nodes_unavailable, 0, 0, sets_[cls.node_set].unavailable};
  const std::string& taints = sets_[cls.node_set].taints;
  if (!taints.empty()) return {Reason::tainted, 0, 0, taints};
  return {Reason::bad_constraints, 0, 0, wanted_of_nodes(cls.key.shape)};
}

Verdict Eligible::stand_required(const JobClass& cls, const Grid& grid) const {
  if (cls.required.size() != cls.key.shape.required_nodes.size())
    return {Reason::bad_constraints, 0, 0, compress_hostlist(cls.key.shape.required_nodes)};
  std::vector<std::string> missing, unavailable;
  for (const std::uint32_t n : cls.required) {
    if (!nodes_of(cls).test(n))
      missing.push_back(grid.node(n).name);
    else if (!grid.available(n))
      unavailable.push_back(grid.node(n).name);
  }
  if (!missing.empty()) return {Reason::bad_constraints, 0, 0, compress_hostlist(missing)};
  if (!cls.required.empty() && flavors_of(cls).empty())
    return {Reason::bad_constraints, 0, 0,
            "all of " + compress_hostlist(cls.key.shape.required_nodes) + " in one flavor"};
  if (!unavailable.empty())
    return {Reason::nodes_unavailable, 0, 0, compress_hostlist(unavailable)};
  return {};
}

Verdict Eligible::stand_in_domain(const JobClass& cls, const Grid& grid) const {
  const BestDomain best = best_domain(cls, grid, true);
  if (best.enough) return {};
  if (best_domain(cls, grid, false).enough)
    return {Reason::nodes_unavailable, 0, 0, sets_[cls.node_set].unavailable};
  return {Reason::topology, best.nodes, cls.demand.min_nodes, cls.key.shape.topology_level};
}

Eligible::BestDomain Eligible::best_domain(const JobClass& cls, const Grid& grid,
                                           bool only_available) const {
  BestDomain best;
  const auto level = grid.levels().find(cls.key.shape.topology_level);
  if (!level) return best;
  struct Sum {
    std::uint32_t nodes = 0;
    std::uint64_t tasks = 0;
  };
  for (const NodeChoice& choice : flavors_of(cls)) {
    std::map<std::uint32_t, Sum> domains;
    const Bits& nodes = nodes_of(choice);
    for (std::size_t w = 0; w < nodes.words(); ++w)
      any_in_word(nodes.word(w), w, [&](std::uint32_t n) {
        const std::uint32_t fits = tasks_fitting(cls.demand, grid.room(n), grid.room(n));
        if (fits == 0 || (only_available && !grid.available(n))) return false;
        Sum& sum = domains[grid.levels().domain(*level, n)];
        ++sum.nodes;
        sum.tasks += fits;
        return false;
      });
    domains.erase(kNoIndex);
    for (const auto& [domain, sum] : domains) {
      best.nodes = std::max(best.nodes, sum.nodes);
      best.enough =
          best.enough || (sum.nodes >= cls.demand.min_nodes && sum.tasks >= cls.demand.tasks);
    }
  }
  return best;
}

bool Eligible::could_hold(const JobClass& cls, const Grid& grid, bool only_available) const {
  return std::any_of(flavors_of(cls).begin(), flavors_of(cls).end(), [&](const NodeChoice& c) {
    return could_hold(cls, sets_[c.node_set], grid, only_available);
  });
}

// Does what choose_nodes() does, over kinds of nodes instead of nodes.
bool Eligible::could_hold(const JobClass& cls, const NodeSet& set, const Grid& grid,
                          bool only_available) const {
  const Demand& d = cls.demand;
  std::uint64_t nodes = 0, tasks = 0;
  std::map<std::uint32_t, std::uint64_t, std::greater<>> by_fit;
  for (const SizeCount& s : set.sizes) {
    const Room& size = only_available ? s.size : s.well;
    if (const std::uint32_t fits = tasks_fitting(d, size, size); fits > 0)
      by_fit[fits] += only_available ? s.available : s.all;
  }
  for (const std::uint32_t n : cls.required) {
    const Room size = only_available ? grid.room(n) : grid.well_room(n);
    const std::uint32_t fits = tasks_fitting(d, size, size);
    if (fits == 0 || !set.nodes.test(n)) return false;
    --by_fit[fits];  // the caller knows that these are available
    tasks += fits;
    ++nodes;
  }
  for (const auto& [fits, count] : by_fit) {
    const std::uint64_t for_nodes = d.min_nodes > nodes ? d.min_nodes - nodes : 0;
    const std::uint64_t for_tasks = d.tasks > tasks ? (d.tasks - tasks + fits - 1) / fits : 0;
    const std::uint64_t taken =
        std::min({count, std::max(for_nodes, for_tasks), d.max_nodes - nodes});
    nodes += taken;
    tasks += taken * fits;
  }
  return nodes >= d.min_nodes && tasks >= d.tasks;
}

}  // namespace gantry::sched
