#include "ctld/sched/eligible.h"

#include <algorithm>

#include <fmt/core.h>

#include "common/hostlist.h"
#include "ctld/sched/constraint.h"

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
  ++generation_;  // classes must not use the numbers they remember
}

void Eligible::refresh(JobClass& cls, const Grid& grid) {
  if (cls.standing.generation == generation_) return;
  cls.node_set = set_for(cls.key, grid);
  cls.required.clear();
  for (const std::string& name : cls.key.shape.required_nodes)
    if (const auto it = node_by_name_.find(name); it != node_by_name_.end())
      cls.required.push_back(it->second);
  std::sort(cls.required.begin(), cls.required.end());
  cls.standing = {generation_, stand(cls, grid)};
}

std::uint32_t Eligible::set_for(const ClassKey& key, const Grid& grid) {
  SetKey set_key{key.partition, key.shape.constraint, key.shape.excluded_nodes};
  const auto [it, made] = set_by_key_.emplace(set_key, static_cast<std::uint32_t>(sets_.size()));
  if (made) sets_.emplace_back();
  NodeSet& set = sets_[it->second];
  if (set.generation != generation_) fill(set, set_key, grid);
  return it->second;
}

void Eligible::fill(NodeSet& set, const SetKey& key, const Grid& grid) const {
  set = NodeSet{};
  set.generation = generation_;
  set.nodes.resize(grid.size());
  const PartitionChanged* p = partition(key.partition);
  const auto constraint = parse_constraint(key.constraint);
  if (p == nullptr || !constraint) return;
  std::vector<std::string> unavailable;
  for (const NodeId id : p->nodes) {
    const std::uint32_t n = id.value();
    if (n >= grid.size() || !grid.node(n).known || set.nodes.test(n)) continue;
    const GridNode& node = grid.node(n);
    if (!matches(*constraint, node.features)) continue;
    if (std::binary_search(key.excluded.begin(), key.excluded.end(), node.name)) continue;
    set.nodes.set(n);
    auto it = std::find_if(set.sizes.begin(), set.sizes.end(),
                           [&](const SizeCount& s) { return s.size == grid.room(n); });
    if (it == set.sizes.end()) it = set.sizes.insert(it, SizeCount{grid.room(n)});
    ++it->all;
    it->available += grid.available(n) ? 1 : 0;
    if (!grid.available(n) && unavailable.size() < kMaxNamedNodes) unavailable.push_back(node.name);
  }
  set.unavailable = compress_hostlist(unavailable);
}

Verdict Eligible::stand(const JobClass& cls, const Grid& grid) const {
  const PartitionChanged* p = partition(cls.key.partition);
  if (p == nullptr)
    return {Reason::partition_down, 0, 0, fmt::format("{}", cls.key.partition.value())};
  if (!p->up) return {Reason::partition_down, 0, 0, p->name};
  if (Verdict v = stand_required(cls, grid); v.reason != Reason::none) return v;
  if (could_hold(cls, grid, true)) return {};
  if (could_hold(cls, grid, false))
    return {Reason::nodes_unavailable, 0, 0, sets_[cls.node_set].unavailable};
  return {Reason::bad_constraints, 0, 0, cls.key.shape.constraint};
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
  if (!unavailable.empty())
    return {Reason::nodes_unavailable, 0, 0, compress_hostlist(unavailable)};
  return {};
}

// choose_nodes() over kinds of nodes instead of nodes.
bool Eligible::could_hold(const JobClass& cls, const Grid& grid, bool only_available) const {
  const Demand& d = cls.demand;
  std::uint64_t nodes = 0, tasks = 0;
  std::map<std::uint32_t, std::uint64_t, std::greater<>> by_fit;
  for (const SizeCount& s : sets_[cls.node_set].sizes)
    if (const std::uint32_t fits = tasks_fitting(d, s.size, s.size); fits > 0)
      by_fit[fits] += only_available ? s.available : s.all;
  for (const std::uint32_t n : cls.required) {
    const std::uint32_t fits = tasks_fitting(d, grid.room(n), grid.room(n));
    if (fits == 0) return false;
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
