// check_fits: could a job ever start here, and if not, the one sentence that says what is missing.
// The order of the questions is from the most specific answer to the least: names, features, what
// one task needs, what one node must have, and last how many nodes there are.
#include <algorithm>
#include <limits>

#include <fmt/core.h>

#include "common/text.h"
#include "ctld/sched/constraint.h"
#include "ctld/sched/geometry.h"

namespace gantry::sched {
namespace {

using Nodes = std::vector<const NodeChanged*>;

tl::unexpected<Error> never(std::string text) { return fail(ErrorCode::never_fits, std::move(text)); }

bool contains(const std::vector<std::string>& sorted, const std::string& name) {
  return std::binary_search(sorted.begin(), sorted.end(), name);
}

template <class Value>
auto largest(const Nodes& nodes, Value value) {
  decltype(value(*nodes.front())) most{};
  for (const NodeChanged* n : nodes) most = std::max(most, value(*n));
  return most;
}

Result<void> check_required(const JobShape& shape, const PartitionChanged& partition,
                            std::span<const NodeChanged* const> nodes) {
  for (const std::string& name : shape.required_nodes) {
    if (contains(shape.excluded_nodes, name))
      return never(fmt::format("node {} is both required and excluded", name));
    const auto here = [&](const NodeChanged* n) { return n->name == name; };
    if (std::none_of(nodes.begin(), nodes.end(), here))
      return never(fmt::format("node {} is not in partition {}", name, partition.name));
  }
  const std::uint32_t most = std::max(shape.max_nodes, shape.min_nodes);
  if (shape.required_nodes.size() > most)
    return never(fmt::format("{} nodes are required by name, but the job takes at most {}",
                             shape.required_nodes.size(), most));
  return {};
}

// What each single node of the job must have; tells what the best node lacks.
Result<void> check_one_node(const Demand& d, const PartitionChanged& partition, const Nodes& nodes) {
  const auto cpus = [](const NodeChanged& n) { return static_cast<std::uint32_t>(n.cpus.size()); };
  if (const auto most = largest(nodes, cpus); most < d.cpus_per_task)
    return never(fmt::format("one task needs {} cores, but the largest node of partition {} has {}",
                             d.cpus_per_task, partition.name, most));
  if (const auto most = largest(nodes, [](const NodeChanged& n) { return n.gpus; }); most < d.gpus)
    return never(fmt::format("{} GPUs per node are asked, but partition {} has nodes with at most {}",
                             d.gpus, partition.name, most));
  const auto memory = largest(nodes, [](const NodeChanged& n) { return n.memory; });
  std::int64_t asked = 0;
  if (d.memory_rule == MemoryRule::per_node) asked = d.memory;
  if (d.memory_rule == MemoryRule::per_cpu &&
      __builtin_mul_overflow(d.memory, std::int64_t{d.cpus_per_task}, &asked))
    asked = std::numeric_limits<std::int64_t>::max();
  if (memory < asked)
    return never(fmt::format("{} of memory on one node are asked, but the largest node of partition "
                             "{} has {}", format_memory(asked), partition.name,
                             format_memory(memory)));
  const auto scratch = largest(nodes, [](const NodeChanged& n) { return n.scratch; });
  if (scratch < d.scratch)
    return never(fmt::format("{} of scratch space per node are asked, but partition {} has nodes "
                             "with at most {}", format_memory(d.scratch), partition.name,
                             format_memory(scratch)));
  return {};
}

}  // namespace

Result<void> check_fits(const JobShape& shape, const PartitionChanged& partition,
                        std::span<const NodeChanged* const> nodes) {
  auto constraint = parse_constraint(shape.constraint);
  if (!constraint) return tl::unexpected(constraint.error());
  if (auto ok = check_required(shape, partition, nodes); !ok) return ok;
  if (nodes.empty()) return never(fmt::format("partition {} has no nodes", partition.name));

  Nodes left;
  for (const NodeChanged* n : nodes)
    if (!contains(shape.excluded_nodes, n->name)) left.push_back(n);
  if (left.empty()) return never(fmt::format("every node of partition {} is excluded", partition.name));
  std::erase_if(left, [&](const NodeChanged* n) { return !matches(*constraint, n->features); });
  if (left.empty())
    return never(fmt::format("no node of partition {} has the features \"{}\"", partition.name,
                             shape.constraint));

  const Demand demand = demand_of(shape, partition);
  if (left.size() < demand.min_nodes)
    return never(fmt::format("{} nodes are asked, but partition {} has {} that may be used",
                             demand.min_nodes, partition.name, left.size()));
  if (auto ok = check_one_node(demand, partition, left); !ok) return ok;

  std::vector<Candidate> candidates;
  std::uint64_t tasks = 0;
  for (std::uint32_t i = 0; i < left.size(); ++i) {
    const Room size = room_of(*left[i]);
    const std::uint32_t fits = tasks_fitting(demand, size, size);
    tasks += fits;
    if (fits > 0)
      candidates.push_back({i, fits, contains(shape.required_nodes, left[i]->name)});
  }
  const auto required = static_cast<std::uint32_t>(shape.required_nodes.size());
  if (choose_nodes(demand, candidates, required)) return {};
  if (candidates.size() < demand.min_nodes)
    return never(fmt::format("{} nodes are asked that hold a task of {} cores with its memory, GPUs "
                             "and scratch; partition {} has {} such nodes", demand.min_nodes,
                             demand.cpus_per_task, partition.name, candidates.size()));
  if (tasks < demand.tasks)
    return never(fmt::format("{} tasks of {} cores are asked; all nodes of partition {} that may be "
                             "used hold {} together", demand.tasks, demand.cpus_per_task,
                             partition.name, tasks));
  return never(fmt::format("{} tasks of {} cores do not fit on {} nodes of partition {}", demand.tasks,
                           demand.cpus_per_task, demand.max_nodes, partition.name));
}

std::size_t FitMemo::Hash::operator()(const ClassKey& key) const { return hash_of(key); }

Result<void> FitMemo::check(const JobShape& shape, const PartitionChanged& partition,
                            std::span<const NodeChanged* const> nodes) {
  ClassKey key{partition.partition, shape, std::nullopt};
  if (const auto it = known_.find(key); it != known_.end()) return it->second;
  if (known_.size() >= kMaxEntries) known_.clear();
  return known_.emplace(std::move(key), check_fits(shape, partition, nodes)).first->second;
}

}  // namespace gantry::sched
