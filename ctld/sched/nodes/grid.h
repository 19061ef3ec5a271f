// The nodes as placement sees them: what each node has, and what of it is free now.
//
// change(), take() and give() update three views of the same facts: sets of nodes for searches
// (search_sets.h), the topology (levels.h) and slices of GPUs (slices.h). The CPUs and devices of a
// job are chosen in devices.h. take() and give() cost O(CPUs taken) and are exact inverses, so a
// plan can try placements here and undo them.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ctld/sched/bits.h"
#include "ctld/sched/change.h"
#include "ctld/sched/gpu/gpu_share.h"
#include "ctld/sched/nodes/levels.h"
#include "ctld/sched/nodes/search_sets.h"
#include "ctld/sched/nodes/slices.h"
#include "ctld/sched/queue/geometry.h"

namespace gantry::sched {

struct GridNode {
  std::string name;
  bool known = false;               // true if a NodeChanged has come
  std::vector<std::uint16_t> cpus;  // logical CPU ids, sorted
  std::uint32_t sockets = 1;
  std::vector<std::string> features;  // sorted
  std::uint32_t flavor = 0;
  std::string gpu_model;
  std::vector<std::string> taints;  // sorted
  bool gpu_jobs_only = false;
  Bits free_cpus;  // by position in cpus
  std::int32_t gpus_when_well = 0;
  std::vector<GpuView> devices;
  std::vector<bool> gpu_taken;  // true for whole or partial use, by index; grows as needed
  bool gpu_sharing = false;
  GpuShares shares;
  std::map<std::string, std::vector<bool>> gres_taken;  // by name, then place; grows as needed

  // The position of the CPU in `cpus`; nullopt: the node does not have it.
  [[nodiscard]] std::optional<std::size_t> position(std::uint16_t cpu) const;
  // How many of these CPUs the node has.
  [[nodiscard]] std::int32_t count_known(std::span<const std::uint16_t> known) const;
  [[nodiscard]] bool has_gpu(std::uint16_t gpu) const;  // by its index
};

// What a job holds of a node in addition to amounts: CPUs, devices and named resources.
struct Things {
  std::span<const std::uint16_t> cpus;
  std::span<const GpuGrant> devices;
  std::span<const GresGrant> gres;
  PartitionId tenant;
};

class Grid {
 public:
  // The node is new or changed. Afterwards all of it is free: the caller takes again what
  // placements hold.
  void change(const NodeChanged& node);
  void grow(std::size_t nodes);  // adds nodes; those not known yet are not available
  void set_levels(const std::vector<TopologyLevel>& levels) { levels_.set(levels, sets_.idle()); }
  void set_gres_names(const std::vector<std::string>& names) { gres_names_ = names; }

  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  [[nodiscard]] const GridNode& node(std::uint32_t n) const { return nodes_[n]; }
  [[nodiscard]] const Room& room(std::uint32_t n) const { return size_[n]; }
  [[nodiscard]] const Room& free(std::uint32_t n) const { return free_[n]; }
  // The capacity of the node if all of its GPUs were in service.
  [[nodiscard]] Room well_room(std::uint32_t n) const {
    Room room = size_[n];
    room.gpus = std::max(room.gpus, nodes_[n].gpus_when_well);
    return room;
  }
  [[nodiscard]] bool available(std::uint32_t n) const { return available_.test(n); }
  [[nodiscard]] bool idle(std::uint32_t n) const { return free_[n].cpus == size_[n].cpus; }
  [[nodiscard]] GresAmounts amounts_of(std::span<const GresGrant> gres) const;

  [[nodiscard]] const SearchSets& sets() const { return sets_; }
  [[nodiscard]] const TopologyLevels& levels() const { return levels_; }
  // The second one is for keeping and dropping places only; set() and mark() are called by the
  // grid.
  [[nodiscard]] const ClusterSlices& slices() const { return slices_; }
  [[nodiscard]] ClusterSlices& slices() { return slices_; }

  // CPUs that the node does not have are ignored. Taking a CPU that is taken is our bug.
  void take(std::uint32_t n, const Room& need, const Things& things);
  void give(std::uint32_t n, const Room& need, const Things& things);

  // Nodes with GPUs on which something has changed since the last call, each once.
  [[nodiscard]] std::vector<std::uint32_t> take_changed();

  [[nodiscard]] std::string audit() const;  // "" or the first thing that is wrong

 private:
  void set_level(std::uint32_t n, std::int32_t cpus);  // 0 = may get no jobs
  void mark_devices(std::uint32_t n, const Things& things, bool taken);
  void note_changed(std::uint32_t n) {
    if (changed_.test(n)) return;
    changed_.set(n);
    changed_nodes_.push_back(n);
  }

  std::vector<GridNode> nodes_;
  std::vector<Room> size_, free_;
  Bits available_;
  std::vector<std::string> gres_names_;
  SearchSets sets_;
  TopologyLevels levels_;
  ClusterSlices slices_;
  Bits changed_;  // see take_changed()
  std::vector<std::uint32_t> changed_nodes_;
};

}  // namespace gantry::sched
