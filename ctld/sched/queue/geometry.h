// Geometry of a job: how many of its tasks fit on a node, what it takes there, how tasks spread
// over nodes, and whether a partition could ever hold it. Pure arithmetic; no state, no time.
//
// Rules, the same at submit and in every plan:
// - A job takes as few nodes as hold its tasks, at least min_nodes, at most max_nodes, and each
//   gets at least one task. A job that asks for fewer tasks than nodes gets as many tasks as nodes.
// - Tasks are dealt to the chosen nodes in turn until each is full, then numbered node by node, as
//   Slurm does: 8 tasks on 3 nodes are 3, 3, 2.
// - Memory of a node is memory_per_node (0 = all of the node), or memory_per_cpu times cores, or
//   the partition's default per core, or else the cores' equal part of the node's memory.
// - With overcommit the tasks on a node share the cores of one task. A job may also ask for a
//   minimum
//   number of cores on each node.
// - A job with N GPUs per task has as many on a node as its tasks there need, and with memory per
//   GPU also the memory of these GPUs.
// - An exclusive job needs nodes without any other job and takes all their cores.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "common/job/job_spec.h"
#include "common/resources/resources.h"
#include "common/result.h"
#include "ctld/sched/change.h"

namespace gantry::sched {

// The size of a node, or what is free of it. Signed: a node that shrank while its jobs run has
// negative amounts free.
struct Room {
  std::int64_t memory = 0;                      // bytes
  std::int64_t scratch = 0;                     // bytes
  std::int32_t cpus = 0;                        // logical CPUs
  std::int32_t gpus = 0;                        // whole devices
  SliceThousandths::in<std::int32_t> slices{};  // compute slices of devices in MIG mode
  // Parts of devices that are taken, apart from `gpus`; in free resources it is 0 or negative. A
  // sufficient sum does not mean that the parts are on one device; GpuShares knows that.
  GpuThousandths::in<std::int32_t> gpu_parts{};
  GresAmounts gres{};  // by PartitionChanged::gres_names
  [[nodiscard]] GpuThousandths gpu_thousandths() const {
    return thousandths_of(Gpus{gpus}) + gpu_parts;
  }
  friend bool operator==(const Room&, const Room&) = default;
  Room& operator+=(const Room& o) {
    memory += o.memory;
    scratch += o.scratch;
    cpus += o.cpus;
    gpus += o.gpus;
    slices += o.slices;
    gpu_parts += o.gpu_parts;
    for (std::size_t i = 0; i < gres.size(); ++i)
      gres[i] = static_cast<std::int16_t>(gres[i] + o.gres[i]);
    return *this;
  }
  Room& operator-=(const Room& o) {
    memory -= o.memory;
    scratch -= o.scratch;
    cpus -= o.cpus;
    gpus -= o.gpus;
    slices -= o.slices;
    gpu_parts -= o.gpu_parts;
    for (std::size_t i = 0; i < gres.size(); ++i)
      gres[i] = static_cast<std::int16_t>(gres[i] - o.gres[i]);
    return *this;
  }
};
Room room_of(const NodeChanged& node);

enum class MemoryRule : std::uint8_t { per_node, per_cpu, even_part, whole_node };

// The request of a job's shape, after the rules of its partition.
struct Demand {
  std::uint32_t min_nodes = 1;      // >= number of required nodes
  std::uint32_t max_nodes = 1;      // >= min_nodes
  std::uint32_t tasks = 1;          // >= min_nodes
  std::uint32_t most_per_node = 1;  // tasks on one node
  std::uint32_t cpus_per_task = 1;
  std::uint32_t least_cpus = 0;  // minimum of cores on each node
  bool overcommit = false;       // a node's tasks share cpus_per_task cores
  MemoryRule memory_rule = MemoryRule::even_part;
  std::int64_t memory = 0;   // bytes, per node or per core
  std::int64_t scratch = 0;  // bytes per node
  // As in JobShape. Every node has room for these: only quota counts them.
  std::int64_t io = 0, net = 0;
  std::uint32_t gpus = 0;           // per node; with gpus_per_task, GPUs of one task
  std::uint32_t gpus_per_task = 0;  // GPUs of a node for each of its tasks; 0 = not used
  std::uint32_t gpus_in_all =
      0;  // GPUs of the whole job, when they cannot be divided evenly among its nodes; 0 = not used
  std::int64_t memory_per_gpu =
      0;  // with gpus_in_all: memory per GPU, which makes the job's memory; 0 = not used
  SliceThousandths slices{};  // as in Room, per node; MigNode knows if they can be made
  DevicePart gpu_share{};     // part of one GPU per node; 0 = none
  GresAmounts gres{};         // per node; an unknown name counts as more than any node has
  bool exclusive = false;
  bool all_gpus = false;  // if exclusive: the job holds all whole GPUs of its nodes
  NodeLayout node_layout = NodeLayout::any;
  // True if the job has requests about topology, neighbours, slices or parts of GPUs: then its
  // failure says nothing about other jobs.
  bool particular = false;
  // True if `memory` is that of one task with its GPUs.
  [[nodiscard]] bool by_task() const { return gpus_per_task > 0 && memory_per_gpu > 0; }
  // The cores that this number of tasks takes on one node, except for jobs on whole nodes.
  [[nodiscard]] std::int64_t cores_for(std::int64_t tasks_here) const {
    return std::max<std::int64_t>(least_cpus, (overcommit ? 1 : tasks_here) * cpus_per_task);
  }
  // The least number of cores that the whole job takes.
  [[nodiscard]] std::int64_t least_cores() const {
    return std::max(std::int64_t{overcommit ? min_nodes : tasks} * cpus_per_task,
                    std::int64_t{min_nodes} * least_cpus);
  }
};
Demand demand_of(const JobShape& shape, const PartitionChanged& partition);

// The number of the job's tasks that fit into `free` of a node of `size`; 0 = none.
std::uint32_t tasks_fitting(const Demand& demand, const Room& size, const Room& free);

// The same as tasks_fitting(...) >= tasks, but cheaper.
bool holds(const Demand& demand, const Room& size, const Room& free, std::uint32_t tasks);

// True if a job `more` finds no place whenever `less` finds none: `more` asks for no smaller tasks,
// no fewer of them, on no fewer and no more nodes. False if that is not certain.
bool asks_no_less(const Demand& more, const Demand& less);

// The room that `tasks` tasks take on a node of `size`.
Room need_for(const Demand& demand, const Room& size, std::uint32_t tasks);

// A node that could take part, in order of preference.
struct Candidate {
  std::uint32_t node = 0;
  std::uint32_t fits = 0;  // tasks that fit, 1 or more
  bool required = false;
};
// How many tasks these nodes hold together.
std::uint64_t sum_fits(std::span<const Candidate> candidates);
struct Share {
  std::uint32_t node = 0;
  std::uint32_t tasks = 0;
};
// The chosen nodes in node order with their tasks; nullopt if they cannot hold the job. All
// required candidates must be among `candidates`; `required` is how many there must be.
std::optional<std::vector<Share>> choose_nodes(const Demand& demand,
                                               std::span<const Candidate> candidates,
                                               std::uint32_t required);

// Checks if this job could ever start in this partition, if all of `nodes` (the partition's, in any
// state) were up and idle. Errors: never_fits with a sentence that names what is missing, or
// invalid_argument for a constraint that does not parse or a topology level that is not among
// `levels`. O(nodes).
Result<void> check_fits(const JobShape& shape, const PartitionChanged& partition,
                        std::span<const NodeChanged* const> nodes,
                        std::span<const TopologyLevel> levels = {});

// A check_fits() that remembers its answers, for submits. Clear it when a node's size, name,
// features or place, a partition or the topology changes.
class FitMemo {
 public:
  static constexpr std::size_t kMaxEntries = 4096;
  Result<void> check(const JobShape& shape, const PartitionChanged& partition,
                     std::span<const NodeChanged* const> nodes,
                     std::span<const TopologyLevel> levels = {});
  void clear() { known_.clear(); }

 private:
  struct Hash {
    std::size_t operator()(const ClassKey& key) const;
  };
  std::unordered_map<ClassKey, Result<void>, Hash> known_;
};

std::size_t hash_of(const ClassKey& key);  // the same on every machine and in every run

}  // namespace gantry::sched
