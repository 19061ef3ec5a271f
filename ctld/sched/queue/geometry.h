// Geometry of a job: how many of its tasks fit on a node, what it takes there, how tasks spread
// over nodes, and whether a partition could ever hold it. Pure arithmetic; no state, no time.
//
// Rules, the same at submit and in every plan:
// - A job takes as few nodes as hold its tasks, at least min_nodes, at most max_nodes, and each
//   gets at least one task. With fewer tasks than nodes, tasks are as many as nodes.
// - Tasks are dealt round to the chosen nodes until each is full, then numbered node by node, as
//   Slurm does: 8 tasks on 3 nodes are 3, 3, 2.
// - Memory of a node is memory_per_node (0 = all of the node), or memory_per_cpu times cores, or
//   the partition's default per core, or else the cores' equal part of the node's memory.
// - An exclusive job needs nodes without any other job and takes all their cores.
#pragma once

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

// What a node has, or has free. Signed: a node that shrank under its jobs has less than nothing.
struct Room {
  std::int64_t memory = 0;                      // bytes
  std::int64_t scratch = 0;                     // bytes
  std::int32_t cpus = 0;                        // logical CPUs
  std::int32_t gpus = 0;                        // whole devices
  SliceThousandths::in<std::int32_t> slices{};  // compute slices of devices in MIG mode
  // What parts of devices take, beside `gpus`: what is free has less than 0 where some are taken.
  // That the sum does says that there is as much, not that it lies together: GpuShares.
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

// A shape with its partition's rules worked in.
struct Demand {
  std::uint32_t min_nodes = 1;      // >= number of required nodes
  std::uint32_t max_nodes = 1;      // >= min_nodes
  std::uint32_t tasks = 1;          // >= min_nodes
  std::uint32_t most_per_node = 1;  // tasks
  std::uint32_t cpus_per_task = 1;
  MemoryRule memory_rule = MemoryRule::even_part;
  std::int64_t memory = 0;    // bytes, per node or per core
  std::int64_t scratch = 0;   // bytes per node
  std::uint32_t gpus = 0;     // per node
  SliceThousandths slices{};  // as in Room, per node; whether they can be cut: MigNode
  DevicePart gpu_share{};     // of one GPU per node; 0 = none
  GresAmounts gres{};         // per node; of a name that is not known more than any has
  bool exclusive = false;
  // About topology, neighbours or slices: its failure says nothing of others.
  bool particular = false;
};
Demand demand_of(const JobShape& shape, const PartitionChanged& partition);

// Tasks of the job that fit into `free` of a node of `size`; 0 = none.
std::uint32_t tasks_fitting(const Demand& demand, const Room& size, const Room& free);

// tasks_fitting(...) >= tasks, where only that is asked.
bool holds(const Demand& demand, const Room& size, const Room& free, std::uint32_t tasks);

// Whoever cannot have `less` now cannot have `more` either: it asks for no smaller tasks, no fewer
// of them, on no fewer and no more nodes. Says no when it cannot tell.
bool asks_no_less(const Demand& more, const Demand& less);

// What `tasks` tasks take on a node of `size`.
Room need_for(const Demand& demand, const Room& size, std::uint32_t tasks);

// A node that could take part, in order of preference.
struct Candidate {
  std::uint32_t node = 0;
  std::uint32_t fits = 0;  // tasks, 1 or more
  bool required = false;
};
struct Share {
  std::uint32_t node = 0;
  std::uint32_t tasks = 0;
};
// The chosen nodes in node order with their tasks; nullopt if they cannot hold the job. All
// required candidates must be among `candidates`; `required` is how many there must be.
std::optional<std::vector<Share>> choose_nodes(const Demand& demand,
                                               std::span<const Candidate> candidates,
                                               std::uint32_t required);

// Could this job ever start in this partition, were all of `nodes` (the partition's, in any state)
// up and idle? never_fits with a sentence that names what is missing, or invalid_argument for a
// constraint that does not parse or a topology level that is not among `levels`. O(nodes).
Result<void> check_fits(const JobShape& shape, const PartitionChanged& partition,
                        std::span<const NodeChanged* const> nodes,
                        std::span<const TopologyLevel> levels = {});

// check_fits with a memory, for the path of submits. Clear it when a node's size, name, features or
// place, a partition or the topology change.
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

std::size_t hash_of(const ClassKey& key);  // equal on every machine and run

}  // namespace gantry::sched
