// check_fits() says whether a job could ever start here, and if not, what is missing, in one
// sentence. The most specific reason is looked for first: names, features, what one task needs,
// what one node must have, and lastly how many nodes there are.
#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>

#include "common/text/text.h"
#include "ctld/sched/queue/constraint.h"
#include "ctld/sched/queue/geometry.h"

namespace gantry::sched {
namespace {

using Nodes = std::vector<const NodeChanged*>;

tl::unexpected<Error> never(std::string text) {
  return fail(ErrorCode::never_fits, std::move(text));
}

// "1 node", "3 nodes".
std::string count(std::uint64_t n, std::string_view what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

bool contains(const std::vector<std::string>& sorted, const std::string& name) {
  return std::binary_search(sorted.begin(), sorted.end(), name);
}

template <class Value>
auto largest(const Nodes& nodes, Value value) {
  decltype(value(*nodes.front())) most{};
  for (const NodeChanged* n : nodes) most = std::max(most, value(*n));
  return most;
}

// A GPU that is out of service counts, because it will be repaired.
std::uint32_t gpus_of(const NodeChanged& n) {
  return std::max(n.gpus, n.gpus_when_well);
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
    return never(fmt::format("{} required by name, but the job takes at most {}",
                             count(shape.required_nodes.size(), "node"), most));
  return {};
}

// The cores that the job takes on a node with one of its tasks.
std::uint64_t cores_of_one(const Demand& d) {
  return static_cast<std::uint64_t>(d.cores_for(1));
}

// "2 cores, 50G of memory, 1 GPU": what one task takes on a node.
std::string one_node(const Demand& d) {
  std::string text = count(cores_of_one(d), "core");
  if (d.memory > 0) {
    const bool per_cpu = d.memory_rule == MemoryRule::per_cpu;
    text += fmt::format(", {} of memory{}", format_memory(d.memory), per_cpu ? " per core" : "");
  }
  if (d.gpus > 0) text += ", " + count(d.gpus, "GPU");
  if (d.gpu_share > DevicePart{})
    text += ", " + amount_words(Resource::gpu, thousandths_of_gpu(d.gpu_share).value());
  if (d.scratch > 0) text += fmt::format(", {} of scratch space", format_memory(d.scratch));
  return text;
}

// Checks what each single node of the job must have; tells what the best node lacks.
Result<void> check_one_node(const Demand& d, const PartitionChanged& partition,
                            const Nodes& nodes) {
  const auto cpus = [](const NodeChanged& n) { return static_cast<std::uint32_t>(n.cpus.size()); };
  if (const auto most = largest(nodes, cpus); most < cores_of_one(d))
    return never(fmt::format("one {} needs {}, but the largest node of partition {} has {}",
                             d.least_cpus > d.cpus_per_task ? "node of the job" : "task",
                             count(cores_of_one(d), "core"), partition.name, most));
  if (const auto most = largest(nodes, gpus_of); most < d.gpus)
    return never(fmt::format("{} per node asked, but the nodes of partition {} have at most {}",
                             count(d.gpus, "GPU"), partition.name, most));
  const auto memory = largest(nodes, [](const NodeChanged& n) { return n.memory; });
  std::int64_t asked = 0;
  if (d.memory_rule == MemoryRule::per_node) asked = d.memory;
  if (d.memory_rule == MemoryRule::per_cpu &&
      __builtin_mul_overflow(d.memory, d.cores_for(1), &asked))
    asked = std::numeric_limits<std::int64_t>::max();
  if (memory < asked)
    return never(
        fmt::format("{} of memory on one node asked, but the largest node of partition {} "
                    "has {}",
                    format_memory(asked), partition.name, format_memory(memory)));
  const auto scratch = largest(nodes, [](const NodeChanged& n) { return n.scratch; });
  if (scratch < d.scratch)
    return never(
        fmt::format("{} of scratch space per node asked, but the nodes of partition {} "
                    "have at most {}",
                    format_memory(d.scratch), partition.name, format_memory(scratch)));
  return {};
}

Result<void> check_levels(const JobShape& shape, std::span<const TopologyLevel> levels) {
  const auto check = [&](const std::string& name) -> Result<void> {
    std::string known;
    for (const TopologyLevel& level : levels) {
      if (level.name == name) return {};
      known += level.name + ", ";
    }
    if (name == "node") return {};
    return fail(ErrorCode::invalid_argument,
                fmt::format("topology level \"{}\" is not known; there {} {}node", name,
                            levels.empty() ? "is only" : "are", known));
  };
  if (shape.topology != TopologyWish::none)
    if (auto ok = check(shape.topology_level); !ok) return ok;
  return shape.anti_affinity.empty() ? Result<void>{} : check(shape.anti_affinity_level);
}

// Keeps the nodes that have enough of each named resource (gres); tells what is missing if none
// has.
Result<void> keep_with_gres(const JobShape& shape, const PartitionChanged& partition, Nodes& left) {
  for (const GresCount& want : shape.gres) {
    const auto& names = partition.gres_names;
    const auto at = std::lower_bound(names.begin(), names.end(), want.name);
    const auto index = static_cast<std::size_t>(at - names.begin());
    const bool known = at != names.end() && *at == want.name;
    const auto has = [&](const NodeChanged& n) { return known ? n.gres[index] : std::int16_t{0}; };
    const std::int16_t most = left.empty() ? std::int16_t{0} : largest(left, has);
    if (most == 0) {
      std::vector<std::string> there{"gpu", "mig", "shard"};
      for (std::size_t i = 0; i < names.size(); ++i)
        if (std::any_of(left.begin(), left.end(),
                        [&](const NodeChanged* n) { return n->gres[i] > 0; }))
          there.push_back(names[i]);
      return never(fmt::format("no node of partition {} has the resource {}; there are {}",
                               partition.name, want.name, fmt::join(there, ", ")));
    }
    if (most < static_cast<std::int64_t>(want.count))
      return never(
          fmt::format("{} {} per node asked, but the nodes of partition {} have at most {}",
                      want.count, want.name, partition.name, most));
    std::erase_if(left, [&](const NodeChanged* n) {
      return has(*n) < static_cast<std::int64_t>(want.count);
    });
  }
  return {};
}

std::vector<std::string> not_tolerated(const JobShape& shape, const NodeChanged& n) {
  std::vector<std::string> missing;
  std::set_difference(n.taints.begin(), n.taints.end(), shape.tolerations.begin(),
                      shape.tolerations.end(), std::back_inserter(missing));
  return missing;
}

Result<void> keep_with_features(const JobShape& shape, const Constraint& constraint,
                                const PartitionChanged& partition, Nodes& left) {
  std::erase_if(left, [&](const NodeChanged* n) { return !matches(constraint, n->features); });
  if (left.empty())
    return never(fmt::format("no node of partition {} has the features \"{}\"", partition.name,
                             shape.constraint));
  // An ability that daemons of an older release do not know, newer ones will report: such a job
  // waits for them.
  std::erase_if(left,
                [&](const NodeChanged* n) { return !has_sandbox(shape.sandbox, n->features); });
  if (!left.empty()) return {};
  return never(
      fmt::format("no node of partition {} has {}", partition.name, wanted_of_nodes(shape)));
}

// Removes the nodes that the job may not use, whatever their size; tells why if none is left.
Result<void> keep_allowed(const JobShape& shape, const Constraint& constraint,
                          const PartitionChanged& partition, Nodes& left) {
  std::erase_if(left,
                [&](const NodeChanged* n) { return contains(shape.excluded_nodes, n->name); });
  if (left.empty())
    return never(fmt::format("every node of partition {} is excluded", partition.name));
  if (auto r = keep_with_features(shape, constraint, partition, left); !r) return r;
  const auto& models = shape.gpu_models;
  if (!models.empty())
    std::erase_if(left, [&](const NodeChanged* n) {
      return std::find(models.begin(), models.end(), n->gpu_model) == models.end();
    });
  if (left.empty())
    return never(fmt::format("no node of partition {} has GPUs of model {}", partition.name,
                             fmt::join(models, " or ")));
  if (!shape.gpu_slice.empty()) {
    std::set<std::string> known;
    std::erase_if(left, [&](const NodeChanged* n) {
      bool has = false;
      for (const GpuView& gpu : n->devices)
        for (const MigGeometry& g : n->geometries)
          for (const MigProfile& p : g.profiles) {
            if (!gpu.mig || g.model != gpu.model) continue;
            known.insert(p.name);
            has = has || p.name == shape.gpu_slice;
          }
      return !has;
    });
    if (left.empty() && known.empty())
      return never(fmt::format("no node of partition {} has GPUs in MIG mode", partition.name));
    if (left.empty())
      return never(fmt::format("no GPU of partition {} has slices of {}; there are {}",
                               partition.name, shape.gpu_slice, fmt::join(known, ", ")));
  }
  if (shape.gpu_share > 0) {
    const bool slice = !shape.gpu_slice.empty();
    std::erase_if(left, [&](const NodeChanged* n) {
      return !n->gpu_sharing || (!slice && gpus_of(*n) == 0);
    });
    if (left.empty())
      return never(
          fmt::format("no node of partition {} has {} that jobs may share; ask for whole "
                      "ones",
                      partition.name, slice ? "slices of " + shape.gpu_slice : "GPUs"));
  }
  if (auto r = keep_with_gres(shape, partition, left); !r) return r;
  if (shape.gpus_per_node == 0 && shape.gpu_share == 0)
    std::erase_if(left, [](const NodeChanged* n) { return n->gpu_jobs_only; });
  if (left.empty())
    return never(
        fmt::format("the nodes of partition {} are for jobs that ask for GPUs", partition.name));
  std::set<std::string> taints;
  std::erase_if(left, [&](const NodeChanged* n) {
    const std::vector<std::string> missing = not_tolerated(shape, *n);
    taints.insert(missing.begin(), missing.end());
    return !missing.empty();
  });
  if (left.empty())
    return never(
        fmt::format("the nodes of partition {} that would do are only for jobs that "
                    "tolerate {}",
                    partition.name, fmt::join(taints, ", ")));
  return {};
}

std::vector<Candidate> candidates_of(const JobShape& shape, const Demand& demand,
                                     const Nodes& nodes) {
  std::vector<Candidate> candidates;
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    Room size = room_of(*nodes[i]);
    size.gpus = static_cast<std::int32_t>(gpus_of(*nodes[i]));
    if (const std::uint32_t fits = tasks_fitting(demand, size, size); fits > 0)
      candidates.push_back(
          {nodes[i]->node.value(), fits, contains(shape.required_nodes, nodes[i]->name)});
  }
  return candidates;
}

bool holds_job(const JobShape& shape, const Demand& demand, const Nodes& nodes) {
  return choose_nodes(demand, candidates_of(shape, demand, nodes),
                      static_cast<std::uint32_t>(shape.required_nodes.size()))
      .has_value();
}

// Checks all nodes that may be used together, whatever their kind.
Result<void> check_together(const JobShape& shape, const Demand& demand,
                            const PartitionChanged& partition, const Nodes& nodes) {
  if (holds_job(shape, demand, nodes)) return {};
  const auto candidates = candidates_of(shape, demand, nodes);
  std::uint64_t tasks = 0;
  for (const Candidate& c : candidates) tasks += c.fits;
  const std::string tasks_asked =
      fmt::format("{} of {}", count(demand.tasks, "task"), count(demand.cpus_per_task, "core"));
  if (candidates.empty())
    return never(
        fmt::format("no node of partition {} has all at once that the job asks of one node: "
                    "{}",
                    partition.name, one_node(demand)));
  if (candidates.size() < demand.min_nodes)
    return never(fmt::format("{} asked; partition {} has {} with what the job asks of one node: {}",
                             count(demand.min_nodes, "node"), partition.name, candidates.size(),
                             one_node(demand)));
  if (demand.node_layout == NodeLayout::next_to_each_other)
    return never(
        fmt::format("{} that follow each other asked, but partition {} has no such nodes with room "
                    "for {}",
                    count(demand.min_nodes, "node"), partition.name, tasks_asked));
  if (tasks < demand.tasks)
    return never(
        fmt::format("{} asked; all nodes of partition {} that may be used hold {} together",
                    tasks_asked, partition.name, tasks));
  return never(fmt::format("{} do not fit on {} of partition {}", tasks_asked,
                           count(demand.max_nodes, "node"), partition.name));
}

// The place of a model in the job's order of preference: a job does not mix nodes of different
// places.
std::size_t model_place(const JobShape& shape, const std::string& model) {
  const auto& models = shape.gpu_models;
  if (models.size() < 2) return 0;
  return static_cast<std::size_t>(std::find(models.begin(), models.end(), model) - models.begin());
}

}  // namespace

namespace {

// Refuses a job that names a node whose taints it does not tolerate.
Result<void> check_required_taints(const JobShape& shape,
                                   std::span<const NodeChanged* const> nodes) {
  for (const NodeChanged* n : nodes)
    if (const auto missing = not_tolerated(shape, *n);
        !missing.empty() && contains(shape.required_nodes, n->name))
      return never(fmt::format("node {} is only for jobs that tolerate {} (--tolerate)", n->name,
                               fmt::join(missing, ", ")));
  return {};
}

// Tells how many nodes are left out for their taints, and for which taints; "" = none.
std::string tainted_text(const JobShape& shape, std::span<const NodeChanged* const> nodes) {
  std::set<std::string> taints;
  std::size_t tainted = 0;
  for (const NodeChanged* n : nodes) {
    const auto missing = not_tolerated(shape, *n);
    taints.insert(missing.begin(), missing.end());
    tainted += missing.empty() ? 0 : 1;
  }
  if (tainted == 0) return {};
  return fmt::format("; {} more {} only for jobs that tolerate {} (--tolerate)", tainted,
                     tainted == 1 ? "is" : "are", fmt::join(taints, ", "));
}

Result<void> check_untainted(const JobShape& shape, const PartitionChanged& partition,
                             std::span<const NodeChanged* const> nodes,
                             std::span<const TopologyLevel> levels) {
  ASSIGN(constraint, parse_constraint(shape.constraint));
  if (auto ok = check_levels(shape, levels); !ok) return ok;
  if (auto ok = check_required(shape, partition, nodes); !ok) return ok;
  if (nodes.empty()) return never(fmt::format("partition {} has no nodes", partition.name));

  Nodes left(nodes.begin(), nodes.end());
  if (auto ok = keep_allowed(shape, *constraint, partition, left); !ok) return ok;
  const Demand demand = demand_of(shape, partition);
  if (left.size() < demand.min_nodes)
    return never(fmt::format("{} asked, but partition {} has {} that may be used",
                             count(demand.min_nodes, "node"), partition.name, left.size()));
  if (auto ok = check_one_node(demand, partition, left); !ok) return ok;

  // A job runs on nodes of one kind, and in one domain if it must.
  if (auto ok = check_together(shape, demand, partition, left); !ok) return ok;
  std::map<std::pair<std::size_t, std::uint32_t>, Nodes> kinds;
  for (const NodeChanged* n : left)
    kinds[{model_place(shape, n->gpu_model), n->flavor}].push_back(n);
  const bool one_kind = std::any_of(kinds.begin(), kinds.end(), [&](const auto& kind) {
    return holds_job(shape, demand, kind.second);
  });
  if (!one_kind)
    return never(
        fmt::format("{} asked: the nodes of partition {} hold them only together, but a "
                    "job runs on nodes of one flavor",
                    count(demand.min_nodes, "node"), partition.name));
  if (shape.topology != TopologyWish::required) return {};
  const auto level = static_cast<std::size_t>(
      std::find_if(levels.begin(), levels.end(),
                   [&](const TopologyLevel& l) { return l.name == shape.topology_level; }) -
      levels.begin());
  for (const auto& [kind, members] : kinds) {
    std::map<std::uint32_t, Nodes> domains;
    for (const NodeChanged* n : members) {
      const std::uint32_t domain = level == levels.size()      ? n->node.value()
                                   : level < n->domains.size() ? n->domains[level]
                                                               : kNoIndex;
      if (domain != kNoIndex) domains[domain].push_back(n);
    }
    for (const auto& [domain, here] : domains)
      if (holds_job(shape, demand, here)) return {};
  }
  return never(fmt::format("{} asked in one {}, but no {} of partition {} has room for them",
                           count(demand.min_nodes, "node"), shape.topology_level,
                           shape.topology_level, partition.name));
}

}  // namespace

Result<void> check_fits(const JobShape& shape, const PartitionChanged& partition,
                        std::span<const NodeChanged* const> nodes,
                        std::span<const TopologyLevel> levels) {
  if (auto ok = check_required_taints(shape, nodes); !ok) return ok;
  auto fits = check_untainted(shape, partition, nodes, levels);
  if (!fits && fits.error().message.find("tolerate") == std::string::npos)
    fits.error().message += tainted_text(shape, nodes);
  return fits;
}

std::size_t FitMemo::Hash::operator()(const ClassKey& key) const {
  return hash_of(key);
}

Result<void> FitMemo::check(const JobShape& shape, const PartitionChanged& partition,
                            std::span<const NodeChanged* const> nodes,
                            std::span<const TopologyLevel> levels) {
  ClassKey key;
  key.partition = partition.partition;
  key.shape = shape;
  if (const auto it = known_.find(key); it != known_.end()) return it->second;
  if (known_.size() >= kMaxEntries) known_.clear();
  return known_.emplace(std::move(key), check_fits(shape, partition, nodes, levels)).first->second;
}

}  // namespace gantry::sched
