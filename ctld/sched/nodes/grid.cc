#include "ctld/sched/nodes/grid.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "common/assert.h"

namespace gantry::sched {

std::optional<std::size_t> GridNode::position(std::uint16_t cpu) const {
  if (cpu < cpus.size() && cpus[cpu] == cpu)
    return cpu;  // the usual case: CPUs are numbered without gaps
  const auto it = std::lower_bound(cpus.begin(), cpus.end(), cpu);
  if (it == cpus.end() || *it != cpu) return std::nullopt;
  return static_cast<std::size_t>(it - cpus.begin());
}

std::int32_t GridNode::count_known(std::span<const std::uint16_t> known) const {
  return static_cast<std::int32_t>(std::count_if(
      known.begin(), known.end(), [&](std::uint16_t c) { return position(c).has_value(); }));
}

bool GridNode::has_gpu(std::uint16_t gpu) const {
  return std::any_of(devices.begin(), devices.end(),
                     [&](const GpuView& g) { return g.index == gpu; });
}

void Grid::grow(std::size_t nodes) {
  if (nodes <= nodes_.size()) return;
  nodes_.resize(nodes);
  size_.resize(nodes);
  free_.resize(nodes);
  available_.resize(nodes);
  changed_.resize(nodes);
  sets_.resize(nodes);
  levels_.resize(nodes);
  slices_.resize(nodes);
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
  levels_.place(n, change.domains);
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
  slices_.set(n, node.devices, change.geometries);
  sets_.set_spread(n, change.spread);
  node.free_cpus = Bits{};
  node.free_cpus.resize(node.cpus.size());
  for (std::size_t i = 0; i < node.cpus.size(); ++i) node.free_cpus.set(i);
  const bool had_gpus = size_[n].gpus > 0;
  size_[n] = free_[n] = room_of(change);
  if (had_gpus || size_[n].gpus > 0) note_changed(n);
  sets_.make_room_for(node.cpus.size());
  set_level(n, free_[n].cpus);
}

void Grid::set_level(std::uint32_t n, std::int32_t cpus) {
  if (!available(n)) cpus = 0;
  if (sets_.set_free(n, cpus, size_[n].cpus)) levels_.note_idle(n, sets_.idle().test(n));
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
  slices_.mark(n, things.devices, things.tenant, taken);
  std::vector<bool>& marks = node.gpu_taken;
  for (const GpuGrant& d : things.devices) {
    if (d.profile || !node.has_gpu(d.gpu)) continue;
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

void Grid::take(std::uint32_t n, const Room& need, const Things& things) {
  mark_devices(n, things, true);
  GridNode& node = nodes_[n];
  Bits& free = node.free_cpus;
  std::int32_t taken = 0;
  for (const std::uint16_t cpu : things.cpus) {
    const auto at = node.position(cpu);
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
  GridNode& node = nodes_[n];
  Bits& free = node.free_cpus;
  std::int32_t given = 0;
  for (const std::uint16_t cpu : things.cpus) {
    const auto at = node.position(cpu);
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
  std::vector<std::int32_t> levels, sizes;
  for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
    const std::int32_t free = static_cast<std::int32_t>(nodes_[n].free_cpus.count());
    if (free != free_[n].cpus)
      return fmt::format("node {}: {} CPUs free, counted {}", n, free_[n].cpus, free);
    levels.push_back(available(n) ? free : 0);
    sizes.push_back(size_[n].cpus);
  }
  std::string wrong = sets_.audit(levels, sizes);
  return wrong.empty() ? levels_.audit(sets_.idle()) : wrong;
}

}  // namespace gantry::sched
