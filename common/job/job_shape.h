// JobShape: the part of a job's request that decides where and how it fits. See job_spec.h.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/fields.h"
#include "common/job/job_access.h"
#include "common/resources/gres.h"
#include "common/special_members.h"

namespace gantry {

enum class TopologyWish : std::uint8_t { none = 0, required = 1, preferred = 2, balanced = 3 };
GANTRY_NAMES(TopologyWish, {none, "none"}, {required, "required"}, {preferred, "preferred"},
             {balanced, "balanced"})

enum class NodeSharing : std::uint8_t { any = 0, same_user = 1, same_tenant = 2 };
GANTRY_NAMES(NodeSharing, {any, "any"}, {same_user, "user"}, {same_tenant, "tenant"})

// Which nodes a job prefers among suitable ones. next_to_each_other: adjacent in the order of the
// configuration. as_many_as_may_be: its tasks are spread over as many nodes as it may have.
enum class NodeLayout : std::uint8_t { any = 0, next_to_each_other = 1, as_many_as_may_be = 2 };
GANTRY_NAMES(NodeLayout, {any, "any"}, {next_to_each_other, "contiguous"},
             {as_many_as_may_be, "spread"})

// Promises to jobs that a node daemon must know to keep. A daemon of an older release would start
// such a job without keeping them. Numbers are permanent.
enum class NodeAbility : std::uint8_t { secrets = 1, storage = 2, staging = 3, doors = 4 };
GANTRY_NAMES(NodeAbility, {secrets, "secrets"}, {storage, "storage"}, {staging, "staging"},
             {doors, "doors"})
constexpr std::uint32_t bit_of(NodeAbility ability) {
  return 1U << static_cast<unsigned>(ability);
}

// The part of a request that decides where and how a job fits. Jobs with equal shapes form one
// scheduling class.
struct JobShape {
  GANTRY_SPECIAL_MEMBERS(JobShape)
  std::uint32_t min_nodes = 1;
  std::uint32_t max_nodes = 1;  // >= min_nodes; the job gets as few as hold its tasks
  std::uint32_t tasks = 1;
  std::optional<std::uint32_t> tasks_per_node;
  std::uint32_t cpus_per_task = 1;              // whole cores
  std::optional<std::int64_t> memory_per_node;  // bytes; at most one of the two is set
  std::optional<std::int64_t> memory_per_cpu;   // bytes
  std::int64_t scratch_per_node = 0;            // bytes
  std::uint32_t gpus_per_node = 0;              // whole GPUs; with gpu_slice, slices
  std::string constraint;                       // features: "a&b", "a|b", "" = any
  std::vector<std::string> required_nodes;      // -w, expanded and sorted
  std::vector<std::string> excluded_nodes;      // -x
  bool exclusive = false;                       // whole nodes
  TopologyWish topology = TopologyWish::none;
  std::string topology_level;  // if a topology is requested: the level's name, "node" for one node
  NodeSharing sharing = NodeSharing::any;  // whose jobs may share its nodes
  std::vector<std::string> tolerations;    // sorted taints that it tolerates
  std::string anti_affinity;               // key of the jobs that it keeps away from; "" = none
  std::string anti_affinity_level;         // "node" or a topology level
  std::uint32_t anti_affinity_most = 1;    // jobs or gang members of the key in one domain
  std::vector<std::string> gpu_models;     // allowed, the preferred first; none = any
  std::string gpu_slice;                   // MIG profile, "1g.10gb"; "" = whole GPUs
  // Thousandths of one GPU on each node, or of one slice if gpu_slice is set: 1..999; 0 = whole
  // ones. It cannot be combined with gpus_per_node.
  std::uint32_t gpu_share = 0;
  std::uint32_t gpu_shards = 0;  // as requested; the controller turns it into a gpu_share
  std::vector<GresCount> gres;   // other resources, on each node; sorted by name, each once
  std::vector<GresCount>
      licenses;  // licences of the cluster, for the whole job; sorted like `gres`
  // The tasks on a node share its cores, which are cpus_per_task however many tasks there are.
  bool overcommit = false;
  std::uint32_t min_cpus_per_node = 0;  // cores on each node at least
  NodeLayout node_layout = NodeLayout::any;
  bool all_gpus = false;  // for exclusive nodes: all their whole GPUs
  // Whole GPUs on all nodes together, if they do not come out even: the last nodes have one less
  // than gpus_per_node. A submit with all of them on one node leaves the number of nodes open. 0 =
  // even.
  std::uint32_t gpus_in_all = 0;
  // If not 0, memory_per_node is this many bytes for each GPU of a node, and a node with fewer GPUs
  // than gpus_per_node has less memory.
  std::int64_t memory_per_gpu = 0;
  // If not 0, each task has this many whole GPUs, and a node has as many as its tasks need
  // together. Then gpus_in_all is for all tasks, and gpus_per_node for a node if the tasks are
  // divided evenly among max_nodes.
  std::uint32_t gpus_per_task = 0;
  // Whole GPUs on the node of this rank, if there are this many nodes; and on all of them.
  [[nodiscard]] std::uint32_t gpus_on(std::size_t rank, std::size_t nodes) const {
    const std::uint64_t more = std::uint64_t{gpus_per_node} * nodes;
    const bool less = gpus_in_all > 0 && more > gpus_in_all && rank + (more - gpus_in_all) >= nodes;
    return gpus_per_node - (less && gpus_per_node > 0 ? 1 : 0);
  }
  [[nodiscard]] std::uint32_t gpus_of(std::uint32_t nodes) const {
    return gpus_in_all > 0 ? gpus_in_all : gpus_per_node * nodes;
  }
  // Its nodes must have this sandbox; unset: the standard one. Set by the controller, from
  // JobSpec::sandbox.
  std::optional<Sandbox> sandbox{};
  // Its nodes must have all of these abilities: bits of bit_of(). Set by the controller.
  std::uint32_t abilities = 0;
  // What quota and prices count of the disks, and of the link, of each node of the job: bytes, and
  // bits, per second; 0 = nothing. The controller sets both, from JobSpec::io_rate and
  // network_rate.
  std::int64_t io_per_node = 0, net_per_node = 0;
  // Cores that this many tasks take on one node, or all tasks on the least number of nodes.
  [[nodiscard]] std::uint64_t cores_on_node(std::uint64_t tasks_here) const {
    return std::max<std::uint64_t>(min_cpus_per_node,
                                   (overcommit ? 1 : tasks_here) * cpus_per_task);
  }
  [[nodiscard]] std::uint64_t least_cores() const {
    const std::uint64_t nodes = std::max(min_nodes, 1u);
    const std::uint64_t all = overcommit ? nodes : std::max<std::uint64_t>(tasks, nodes);
    return std::max(all * cpus_per_task, nodes * min_cpus_per_node);
  }
  friend bool operator==(const JobShape&, const JobShape&) = default;
  GANTRY_FIELDS(FIELD(1, min_nodes), FIELD(2, max_nodes), FIELD(3, tasks), FIELD(4, tasks_per_node),
                FIELD(5, cpus_per_task), FIELD(6, memory_per_node), FIELD(7, memory_per_cpu),
                FIELD(8, scratch_per_node), FIELD(9, gpus_per_node), FIELD(10, constraint),
                FIELD(11, required_nodes), FIELD(12, excluded_nodes), FIELD(13, exclusive),
                FIELD(14, topology), FIELD(15, topology_level), FIELD(16, sharing),
                FIELD(17, tolerations), FIELD(18, anti_affinity), FIELD(19, anti_affinity_level),
                FIELD(20, anti_affinity_most), FIELD(21, gpu_models), FIELD(22, gpu_slice),
                FIELD(23, gpu_share), FIELD(24, gpu_shards), FIELD(25, gres), FIELD(26, licenses),
                FIELD(27, overcommit), FIELD(28, min_cpus_per_node), FIELD(29, node_layout),
                FIELD(30, all_gpus), FIELD(39, gpus_in_all), FIELD(41, memory_per_gpu),
                FIELD(42, gpus_per_task), FIELD(35, sandbox), FIELD(36, abilities),
                FIELD(43, io_per_node), FIELD(44, net_per_node))
};

}  // namespace gantry
