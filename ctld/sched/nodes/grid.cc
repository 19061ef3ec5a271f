#include "ctld/sched/nodes/grid.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "common/assert.h"
#include "ctld/sched/gpu/gpu_choice.h"

namespace gantry::sched {

void Grid::grow(std::size_t nodes) {
  if (nodes <= nodes_.size()) return;
  nodes_.resize(nodes);
  size_.resize(nodes);
  free_.resize(nodes);
  level_.resize(nodes, 0);
  available_.resize(nodes);
  idle_.resize(nodes);
  slice_parts_.resize(nodes);
  spread_.resize(nodes);
  changed_.resize(nodes);
  leaf_.resize(nodes, kNoIndex);
  for (Bits& set : at_least_) set.resize(nodes);
}

void Grid::change(const NodeChanged& change) {
  const std::uint32_t n = change.node.value();
  grow(std::size_t{n} + 1);
  set_level(n, 0);
  GridNode& node = nodes_[n];
  node.name = change.name;
  node.known = true;
  if (change.available)
    available_.set(n);
  else
    available_.clear(n);
  node.cpus = change.cpus;
  node.sockets = std::max(change.sockets, 1u);
  node.features = change.features;
  node.flavor = change.flavor;
  node.gpu_model = change.gpu_model;
  node.domains = change.domains;
  leaf_[n] = levels_.empty() ? kNoIndex : domain(levels() - 1, n);
  node.taints = change.taints;
  node.gpu_jobs_only = change.gpu_jobs_only;
  node.gpus_when_well = static_cast<std::int32_t>(change.gpus_when_well);
  node.devices = change.devices;
  if (node.devices.empty())
    for (std::uint32_t i = 0; i < change.gpus; ++i)
      node.devices.push_back({static_cast<std::uint16_t>(i), -1, false, change.gpu_model, {}});
  node.gpu_taken.clear();
  node.gpu_sharing = change.gpu_sharing;
  node.shares.clear();
  node.gres_taken.clear();
  const bool had_slices = !node.slices.gpus().empty();
  node.slices.set(node.devices, change.geometries, shapes_);
  slice_parts_.clear(n);
  fleet_old_ = fleet_old_ || had_slices || !node.slices.gpus().empty();
  if (spread_.test(n)) --spread_nodes_;
  spread_.clear(n);
  if (change.spread) {
    spread_.set(n);
    ++spread_nodes_;
  }
  node.free_cpus = Bits{};
  node.free_cpus.resize(node.cpus.size());
  for (std::size_t i = 0; i < node.cpus.size(); ++i) node.free_cpus.set(i);
  const bool had_gpus = size_[n].gpus > 0;
  size_[n] = free_[n] = room_of(change);
  if (had_gpus || size_[n].gpus > 0) note_changed(n);
  while (at_least_.size() <= node.cpus.size()) {
    at_least_.emplace_back().resize(nodes_.size());
    with_.push_back(0);
  }
  set_level(n, free_[n].cpus);
}

void Grid::set_level(std::uint32_t n, std::int32_t cpus) {
  if (!available(n)) cpus = 0;
  const std::int32_t old = std::exchange(level_[n], cpus);
  for (std::int32_t c = old; c > cpus; --c) at_least_[static_cast<std::size_t>(c)].clear(n);
  for (std::int32_t c = old + 1; c <= cpus; ++c) at_least_[static_cast<std::size_t>(c)].set(n);
  if (old > 0) --with_[static_cast<std::size_t>(old)];
  if (cpus > 0) ++with_[static_cast<std::size_t>(cpus)];
  set_idle(n, cpus > 0 && cpus == size_[n].cpus);
}

void Grid::set_idle(std::uint32_t n, bool idle) {
  if (idle_.test(n) == idle) return;
  if (idle)
    idle_.set(n);
  else
    idle_.clear(n);
  const std::uint32_t in = leaf(n);
  if (in == kNoIndex) return;
  if (idle_in_leaf_.size() <= in) idle_in_leaf_.resize(std::size_t{in} + 1, 0);
  idle_in_leaf_[in] += idle ? 1 : -1u;
}

void Grid::set_levels(const std::vector<TopologyLevel>& levels) {
  levels_.clear();
  for (const TopologyLevel& level : levels) levels_.push_back(level.name);
  idle_in_leaf_.clear();
  for (std::uint32_t n = 0; n < nodes_.size(); ++n) leaf_[n] = kNoIndex;
  for (std::uint32_t n = 0; n < nodes_.size() && !levels_.empty(); ++n)
    leaf_[n] = domain(this->levels() - 1, n);
  for (std::uint32_t n = 0; n < nodes_.size(); ++n)
    if (idle_.test(n)) {
      idle_.clear(n);
      set_idle(n, true);
    }
}

std::optional<std::uint32_t> Grid::level(const std::string& name) const {
  if (name == "node") return levels();
  const auto it = std::find(levels_.begin(), levels_.end(), name);
  if (it == levels_.end()) return std::nullopt;
  return static_cast<std::uint32_t>(it - levels_.begin());
}

std::optional<std::size_t> Grid::position(std::uint32_t n, std::uint16_t cpu) const {
  const auto& cpus = nodes_[n].cpus;
  if (cpu < cpus.size() && cpus[cpu] == cpu) return cpu;  // the usual numbering
  const auto it = std::lower_bound(cpus.begin(), cpus.end(), cpu);
  if (it == cpus.end() || *it != cpu) return std::nullopt;
  return static_cast<std::size_t>(it - cpus.begin());
}

std::int32_t Grid::count_known(std::uint32_t n, std::span<const std::uint16_t> cpus) const {
  return static_cast<std::int32_t>(std::count_if(
      cpus.begin(), cpus.end(), [&](std::uint16_t c) { return position(n, c).has_value(); }));
}

bool Grid::has_gpu(std::uint32_t n, std::uint16_t gpu) const {
  const std::vector<GpuView>& all = nodes_[n].devices;
  return std::any_of(all.begin(), all.end(), [&](const GpuView& g) { return g.index == gpu; });
}

std::vector<std::uint16_t> Grid::choose_cpus(std::uint32_t n, std::int32_t count) const {
  const GridNode& node = nodes_[n];
  const std::size_t all = node.cpus.size();
  std::size_t from = 0;
  if (node.sockets > 1 && count < static_cast<std::int32_t>(all)) {
    std::int32_t best = 0;
    for (std::uint32_t s = 0; s < node.sockets; ++s) {
      std::int32_t free = 0;
      for (std::size_t i = all * s / node.sockets; i < all * (s + 1) / node.sockets; ++i)
        free += node.free_cpus.test(i) ? 1 : 0;
      if (free < count || (best > 0 && free >= best)) continue;
      best = free;
      from = all * s / node.sockets;
    }
  }
  std::vector<std::uint16_t> chosen;
  chosen.reserve(static_cast<std::size_t>(count));
  for (std::size_t w = from / 64; w < node.free_cpus.words(); ++w) {
    std::uint64_t word = node.free_cpus.word(w);
    if (w == from / 64) word &= ~std::uint64_t{0} << (from % 64);
    if (any_in_word(word, w, [&](std::uint32_t i) {
          if (static_cast<std::int32_t>(chosen.size()) == count) return true;
          chosen.push_back(node.cpus[i]);
          return false;
        }))
      break;
  }
  GANTRY_ASSERT(static_cast<std::int32_t>(chosen.size()) == count, "fewer CPUs free than counted");
  return chosen;
}

std::vector<GpuGrant> Grid::choose_devices(std::uint32_t n, std::int32_t count) const {
  std::vector<GpuGrant> chosen;
  const GridNode& node = nodes_[n];
  for (const std::uint16_t gpu :
       choose_gpus(node.devices, node.gpu_taken, static_cast<std::uint32_t>(count)))
    chosen.push_back({gpu, std::nullopt, 0});
  return chosen;
}

bool Grid::has_devices(std::uint32_t n, const Demand& demand, PartitionId tenant) const {
  if (demand.gpus == 0 && demand.gpu_share == DevicePart{}) return true;
  const GridNode& node = nodes_[n];
  const std::int32_t untouched = free_[n].gpus - node.shares.shared();
  if (demand.gpu_share == DevicePart{}) return untouched >= static_cast<std::int32_t>(demand.gpus);
  return node.gpu_sharing &&
         (untouched > 0 || node.shares.room_beside(node.devices, tenant, demand.gpu_share));
}

GpuGrant Grid::choose_part(std::uint32_t n, DevicePart part, PartitionId tenant) const {
  const GridNode& node = nodes_[n];
  auto gpu = node.shares.room_beside(node.devices, tenant, part);
  if (!gpu) gpu = choose_gpus(node.devices, node.gpu_taken, 1).front();
  return {*gpu, std::nullopt, 0, thousandths_of_gpu(part).narrow<std::uint16_t>()};
}

std::vector<GresGrant> Grid::choose_gres(std::uint32_t n, std::span<const GresCount> wanted) const {
  std::vector<GresGrant> chosen;
  for (const GresCount& want : wanted) {
    GresGrant& grant = chosen.emplace_back(GresGrant{want.name, {}});
    const auto marks = nodes_[n].gres_taken.find(want.name);
    for (std::uint16_t i = 0; grant.devices.size() < want.count; ++i) {
      GANTRY_ASSERT(i < kMostGresCount, "fewer resources free than counted");
      if (marks == nodes_[n].gres_taken.end() || i >= marks->second.size() || !marks->second[i])
        grant.devices.push_back(i);
    }
  }
  return chosen;
}

GresAmounts Grid::amounts_of(std::span<const GresGrant> gres) const {
  GresAmounts out{};
  for (const GresGrant& g : gres)
    for (std::size_t i = 0; i < gres_names_.size(); ++i)
      if (gres_names_[i] == g.name) out[i] = static_cast<std::int16_t>(g.devices.size());
  return out;
}

void Grid::mark_devices(std::uint32_t n, const Things& things, bool taken) {
  GridNode& node = nodes_[n];
  for (const GresGrant& g : things.gres) {
    std::vector<bool>& marks = node.gres_taken[g.name];
    for (const std::uint16_t d : g.devices) {
      if (marks.size() <= d) marks.resize(d + 1u);
      GANTRY_ASSERT(marks[d] != taken, "a resource was given, or given back, twice");
      marks[d] = taken;
    }
  }
  if (things.devices.empty()) return;
  node.slices.mark(things.devices, things.tenant, taken);
  if (node.slices.has_parts())
    slice_parts_.set(n);
  else
    slice_parts_.clear(n);
  for (const GpuGrant& d : things.devices)
    if (const auto at = fleet_old_ ? std::nullopt : node.slices.find(d))
      fleet_.put(node.slices.gpus()[at->first].fleet, node.slices.gpus()[at->first].state);
  std::vector<bool>& marks = node.gpu_taken;
  for (const GpuGrant& d : things.devices) {
    if (d.profile || !has_gpu(n, d.gpu)) continue;
    node.shares.mark({&d, 1}, things.tenant, taken);
    if (marks.size() <= d.gpu) marks.resize(d.gpu + 1u);
    if (is_part(d)) {
      marks[d.gpu] = node.shares.is_shared(d.gpu);
      continue;
    }
    GANTRY_ASSERT(marks[d.gpu] != taken, "a GPU was given, or given back, twice");
    marks[d.gpu] = taken;
  }
}

void Grid::settle_slices() {
  if (!std::exchange(fleet_old_, false)) return;
  fleet_.build(nodes_, shapes_);
}

void Grid::hold_slice(std::uint32_t n, std::size_t gpu, const MigRack::Hold& hold,
                      std::vector<MigUsed> used) {
  nodes_[n].slices.hold(gpu, hold, std::move(used));
  if (std::find(held_nodes_.begin(), held_nodes_.end(), n) == held_nodes_.end())
    held_nodes_.push_back(n);
}

void Grid::drop_holds() {
  for (const std::uint32_t n : held_nodes_) nodes_[n].slices.drop_holds();
  held_nodes_.clear();
}

void Grid::take(std::uint32_t n, const Room& need, const Things& things) {
  mark_devices(n, things, true);
  Bits& free = nodes_[n].free_cpus;
  std::int32_t taken = 0;
  for (const std::uint16_t cpu : things.cpus) {
    const auto at = position(n, cpu);
    if (!at) continue;
    GANTRY_ASSERT(free.test(*at), "a CPU was given twice");
    free.clear(*at);
    ++taken;
  }
  if (size_[n].gpus > 0) note_changed(n);
  free_[n] -= {need.memory, need.scratch, taken, need.gpus, need.slices, need.gpu_parts, need.gres};
  set_level(n, free_[n].cpus);
}

void Grid::give(std::uint32_t n, const Room& need, const Things& things) {
  mark_devices(n, things, false);
  Bits& free = nodes_[n].free_cpus;
  std::int32_t given = 0;
  for (const std::uint16_t cpu : things.cpus) {
    const auto at = position(n, cpu);
    if (!at) continue;
    GANTRY_ASSERT(!free.test(*at), "a CPU was given back twice");
    free.set(*at);
    ++given;
  }
  if (size_[n].gpus > 0) note_changed(n);
  free_[n] += {need.memory, need.scratch, given, need.gpus, need.slices, need.gpu_parts, need.gres};
  set_level(n, free_[n].cpus);
}

std::vector<std::uint32_t> Grid::take_changed() {
  for (const std::uint32_t n : changed_nodes_) changed_.clear(n);
  return std::exchange(changed_nodes_, {});
}

std::string Grid::audit() const {
  std::vector<std::uint32_t> with(with_.size(), 0), idle_in_leaf(idle_in_leaf_.size(), 0);
  for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
    const std::int32_t free = static_cast<std::int32_t>(nodes_[n].free_cpus.count());
    if (free != free_[n].cpus)
      return fmt::format("node {}: {} CPUs free, counted {}", n, free_[n].cpus, free);
    const std::int32_t level = available(n) ? free : 0;
    if (level_[n] != level)
      return fmt::format("node {}: level {} instead of {}", n, level_[n], level);
    if (level > 0) ++with[static_cast<std::size_t>(level)];
    for (std::size_t c = 1; c < at_least_.size(); ++c)
      if (at_least_[c].test(n) != (static_cast<std::int32_t>(c) <= level))
        return fmt::format("node {} is wrong in the set of {} free cores", n, c);
    if (idle_.test(n) != (level > 0 && free == size_[n].cpus))
      return fmt::format("node {}: idle", n);
    if (idle_.test(n) && leaf(n) < idle_in_leaf.size()) ++idle_in_leaf[leaf(n)];
  }
  if (idle_in_leaf != idle_in_leaf_) return "idle nodes per leaf";
  return with == with_ ? "" : "counts per level";
}

}  // namespace gantry::sched
