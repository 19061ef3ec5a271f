// Topology as placement sees it: the domain of every node at every level, and how many nodes of
// each leaf are idle. Topology requests of jobs are in topology.h.
//
// The widest level is 0; level count() is that of the nodes, each of which is a domain. Leaves are
// the domains of the narrowest level. All functions cost O(1), except set(): O(nodes).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ctld/sched/bits.h"
#include "ctld/sched/tenancy.h"

namespace gantry::sched {

class TopologyLevels {
 public:
  void resize(std::size_t nodes);
  // Replaces the levels. `idle`: the nodes that are idle now.
  void set(const std::vector<TopologyLevel>& levels, const Bits& idle);
  // Sets the node's domains by level (kNoIndex: none). The node must not be counted as idle.
  void place(std::uint32_t n, const std::vector<std::uint32_t>& domains);
  void note_idle(std::uint32_t n, bool idle);  // the node has become idle, or is no longer idle

  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(names_.size()); }
  // The level of this name, also "node"; nullopt: there is none.
  [[nodiscard]] std::optional<std::uint32_t> find(const std::string& name) const;
  [[nodiscard]] std::uint32_t domain(std::uint32_t level,
                                     std::uint32_t n) const {  // domain, or kNoIndex
    if (level >= names_.size()) return n;
    const auto& domains = domains_[n];
    return level < domains.size() ? domains[level] : kNoIndex;
  }
  [[nodiscard]] std::uint32_t leaf(std::uint32_t n) const { return leaf_[n]; }  // leaf, or kNoIndex
  [[nodiscard]] std::uint32_t idle_in_leaf(std::uint32_t leaf) const {
    return leaf < idle_in_leaf_.size() ? idle_in_leaf_[leaf] : 0;
  }

  [[nodiscard]] std::string audit(const Bits& idle) const;  // "" or what is wrong

 private:
  [[nodiscard]] std::uint32_t find_leaf(std::uint32_t n) const {
    return names_.empty() ? kNoIndex : domain(count() - 1, n);
  }

  std::vector<std::string> names_;
  std::vector<std::vector<std::uint32_t>> domains_;  // by node, then level
  std::vector<std::uint32_t> leaf_;                  // leaf, by node
  std::vector<std::uint32_t> idle_in_leaf_;
};

}  // namespace gantry::sched
