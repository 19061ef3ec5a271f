#include "ctld/sched/nodes/levels.h"

#include <algorithm>

namespace gantry::sched {

void TopologyLevels::resize(std::size_t nodes) {
  domains_.resize(nodes);
  leaf_.resize(nodes, kNoIndex);
}

void TopologyLevels::set(const std::vector<TopologyLevel>& levels, const Bits& idle) {
  names_.clear();
  for (const TopologyLevel& level : levels) names_.push_back(level.name);
  idle_in_leaf_.clear();
  for (std::uint32_t n = 0; n < leaf_.size(); ++n) {
    leaf_[n] = find_leaf(n);
    if (idle.test(n)) note_idle(n, true);
  }
}

void TopologyLevels::place(std::uint32_t n, const std::vector<std::uint32_t>& domains) {
  domains_[n] = domains;
  leaf_[n] = find_leaf(n);
}

void TopologyLevels::note_idle(std::uint32_t n, bool idle) {
  const std::uint32_t in = leaf_[n];
  if (in == kNoIndex) return;
  if (idle_in_leaf_.size() <= in) idle_in_leaf_.resize(std::size_t{in} + 1, 0);
  idle_in_leaf_[in] += idle ? 1 : -1u;
}

std::optional<std::uint32_t> TopologyLevels::find(const std::string& name) const {
  if (name == "node") return count();
  const auto it = std::find(names_.begin(), names_.end(), name);
  if (it == names_.end()) return std::nullopt;
  return static_cast<std::uint32_t>(it - names_.begin());
}

std::string TopologyLevels::audit(const Bits& idle) const {
  std::vector<std::uint32_t> counted(idle_in_leaf_.size(), 0);
  for (std::uint32_t n = 0; n < leaf_.size(); ++n)
    if (idle.test(n) && leaf_[n] < counted.size()) ++counted[leaf_[n]];
  return counted == idle_in_leaf_ ? "" : "idle nodes per leaf";
}

}  // namespace gantry::sched
