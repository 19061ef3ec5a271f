// The nodes as placement sees them: what each has, what is free now, and which CPUs.
//
// Kept so that a search touches only nodes with enough free cores: for every number c there is the
// set of nodes that may take work and have at least c cores free. Taking and giving back cost
// O(CPUs taken) and are exact inverses, so a plan tries things here and puts them back.
#pragma once

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ctld/sched/bits.h"
#include "ctld/sched/change.h"
#include "ctld/sched/gpu/gpu_share.h"
#include "ctld/sched/gpu/mig_fleet.h"
#include "ctld/sched/gpu/mig_rack.h"
#include "ctld/sched/queue/geometry.h"

namespace gantry::sched {

struct GridNode {
  std::string name;
  bool known = false;               // a NodeChanged has come
  std::vector<std::uint16_t> cpus;  // logical CPU ids, sorted
  std::uint32_t sockets = 1;
  std::vector<std::string> features;  // sorted
  std::uint32_t flavor = 0;
  std::string gpu_model;
  std::vector<std::uint32_t> domains;  // by topology level; kNoIndex = none
  std::vector<std::string> taints;     // sorted
  bool gpu_jobs_only = false;
  Bits free_cpus;  // by position in cpus
  std::int32_t gpus_when_well = 0;
  std::vector<GpuView> devices;
  std::vector<bool> gpu_taken;  // whole or in part, by index; grows as needed
  bool gpu_sharing = false;
  GpuShares shares;
  std::map<std::string, std::vector<bool>> gres_taken;  // by name, then place; grows as needed
  MigRack slices;                                       // the others
};

// What somebody holds of a node, beside amounts.
struct Things {
  std::span<const std::uint16_t> cpus;
  std::span<const GpuGrant> devices;
  std::span<const GresGrant> gres;
  PartitionId tenant;
};

class Grid {
 public:
  // New or changed. Everything is free afterwards: the caller takes again what placements hold.
  void change(const NodeChanged& node);
  void grow(std::size_t nodes);  // unknown nodes in between are there, but not available
  void set_levels(
      const std::vector<TopologyLevel>& levels);  // of topology; nodes know their domains

  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  [[nodiscard]] const GridNode& node(std::uint32_t n) const { return nodes_[n]; }
  [[nodiscard]] const Room& room(std::uint32_t n) const { return size_[n]; }
  [[nodiscard]] const Room& free(std::uint32_t n) const { return free_[n]; }
  // Were all of its GPUs in service.
  [[nodiscard]] Room well_room(std::uint32_t n) const {
    Room room = size_[n];
    room.gpus = std::max(room.gpus, nodes_[n].gpus_when_well);
    return room;
  }
  [[nodiscard]] bool available(std::uint32_t n) const { return available_.test(n); }
  // Topology: the widest level is 0; levels() itself is that of the nodes, each a domain.
  [[nodiscard]] std::uint32_t levels() const { return static_cast<std::uint32_t>(levels_.size()); }
  [[nodiscard]] std::optional<std::uint32_t> level(const std::string& name) const;
  [[nodiscard]] std::uint32_t domain(std::uint32_t level, std::uint32_t n) const {  // or kNoIndex
    if (level >= levels_.size()) return n;
    const auto& domains = nodes_[n].domains;
    return level < domains.size() ? domains[level] : kNoIndex;
  }
  // Leaves are the domains of the narrowest level. Idle nodes of a leaf that may take work.
  [[nodiscard]] std::uint32_t leaf(std::uint32_t n) const { return leaf_[n]; }
  [[nodiscard]] std::uint32_t idle_in_leaf(std::uint32_t leaf) const {
    return leaf < idle_in_leaf_.size() ? idle_in_leaf_[leaf] : 0;
  }
  [[nodiscard]] bool any_spread() const { return spread_nodes_ > 0; }
  [[nodiscard]] std::uint64_t spread_word(std::size_t w) const { return spread_.word(w); }

  [[nodiscard]] bool idle(std::uint32_t n) const { return free_[n].cpus == size_[n].cpus; }

  // The w-th word of the nodes that are available and have at least `cpus` (1 or more) cores free.
  [[nodiscard]] std::uint64_t at_least(std::int32_t cpus, std::size_t w) const {
    return static_cast<std::size_t>(cpus) < at_least_.size()
               ? at_least_[static_cast<std::size_t>(cpus)].word(w)
               : 0;
  }
  [[nodiscard]] std::uint64_t idle_word(std::size_t w) const { return idle_.word(w); }
  [[nodiscard]] std::size_t words() const { return idle_.words(); }
  [[nodiscard]] std::int32_t most_cpus() const {
    return static_cast<std::int32_t>(at_least_.size()) - 1;
  }
  // Available nodes with exactly this many cores free.
  [[nodiscard]] std::uint32_t count_with(std::int32_t cpus) const {
    return with_[static_cast<std::size_t>(cpus)];
  }

  // `count` free CPUs: within one socket if they fit, then the socket with the fewest that do; else
  // the lowest.
  [[nodiscard]] std::vector<std::uint16_t> choose_cpus(std::uint32_t n, std::int32_t count) const;

  // As many whole GPUs: gpu_choice.h. A node that was told no devices has numbers.
  [[nodiscard]] std::vector<GpuGrant> choose_devices(std::uint32_t n, std::int32_t count) const;
  // Whether there are devices for it, beyond the numbers: parts lie on the tenant's own GPUs or on
  // ones that nobody has, whole ones are not shared.
  [[nodiscard]] bool has_devices(std::uint32_t n, const Demand& demand, PartitionId tenant) const;
  // That part of one: beside others of the tenant if it fits, on the fullest such GPU.
  [[nodiscard]] GpuGrant choose_part(std::uint32_t n, DevicePart part, PartitionId tenant) const;

  // As many of each name, the first that are free.
  [[nodiscard]] std::vector<GresGrant> choose_gres(std::uint32_t n,
                                                   std::span<const GresCount> wanted) const;
  [[nodiscard]] GresAmounts amounts_of(std::span<const GresGrant> gres) const;
  void set_gres_names(const std::vector<std::string>& names) { gres_names_ = names; }

  // ---- slices of GPUs in MIG mode
  void settle_slices();  // before a plan: fleet() and the nodes agree
  // Calls f(node) for nodes with slices that jobs share, until it returns true; says if it did.
  template <class F>
  bool any_with_slice_parts(F&& f) const {
    for (std::size_t w = 0; w < slice_parts_.words(); ++w)
      if (any_in_word(slice_parts_.word(w), w, f)) return true;
    return false;
  }
  [[nodiscard]] const MigFleet& fleet() const { return fleet_; }
  [[nodiscard]] const MigShapes& shapes() const { return shapes_; }
  // Places that are kept for somebody, until drop_holds(); see MigRack.
  void hold_slice(std::uint32_t n, std::size_t gpu, const MigRack::Hold& hold,
                  std::vector<MigUsed> used);
  void slices_last(std::uint32_t n, std::span<const GpuGrant> devices, Instant until) {
    if (!held_nodes_.empty()) nodes_[n].slices.lasts(devices, until);
  }
  void drop_holds();
  [[nodiscard]] const std::vector<std::uint32_t>& held_nodes() const { return held_nodes_; }

  // CPUs that the node does not have are passed over. Taking one that is taken is our bug.
  void take(std::uint32_t n, const Room& need, const Things& things);
  void give(std::uint32_t n, const Room& need, const Things& things);
  // How many of these CPUs the node has.
  [[nodiscard]] std::int32_t count_known(std::uint32_t n,
                                         std::span<const std::uint16_t> cpus) const;

  [[nodiscard]] bool has_gpu(std::uint32_t n, std::uint16_t gpu) const;  // by its index

  // Nodes with GPUs of which something has changed since this was asked, each once.
  [[nodiscard]] std::vector<std::uint32_t> take_changed();

  [[nodiscard]] std::string audit() const;  // "" or the first thing that is wrong

 private:
  [[nodiscard]] std::optional<std::size_t> position(std::uint32_t n, std::uint16_t cpu) const;
  void set_level(std::uint32_t n, std::int32_t cpus);  // 0 = may take no work
  void set_idle(std::uint32_t n, bool idle);
  void mark_devices(std::uint32_t n, const Things& things, bool taken);
  void note_changed(std::uint32_t n) {
    if (changed_.test(n)) return;
    changed_.set(n);
    changed_nodes_.push_back(n);
  }

  MigShapes shapes_;
  MigFleet fleet_;
  bool fleet_old_ = false;
  std::vector<std::uint32_t> held_nodes_;  // with places that are kept, each once

  std::vector<GridNode> nodes_;
  std::vector<Room> size_, free_;
  std::vector<std::int32_t> level_;  // cores free as entered in the sets below
  std::vector<Bits> at_least_;       // by number of cores; [0] unused
  std::vector<std::uint32_t> with_;  // by number of cores
  Bits available_;
  Bits idle_;         // available and all cores free
  Bits slice_parts_;  // with slices of which jobs have parts
  std::vector<std::string> gres_names_;
  std::vector<std::string> levels_;
  std::vector<std::uint32_t> leaf_;  // by node
  std::vector<std::uint32_t> idle_in_leaf_;
  Bits spread_;  // nodes of pools that are filled from the emptiest on
  std::uint32_t spread_nodes_ = 0;
  Bits changed_;  // see take_changed()
  std::vector<std::uint32_t> changed_nodes_;
};

}  // namespace gantry::sched
