// Sets of nodes, so that a search for a place visits only these nodes.
//
// For every number c there is the set of nodes that may take work and have at least c cores free.
// There are also the set of idle nodes, and the set of nodes of pools that are filled from the
// emptiest node on. A search reads the w-th word of a set: 64 nodes at once (bits.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ctld/sched/bits.h"

namespace gantry::sched {

class SearchSets {
 public:
  void resize(std::size_t nodes);
  void make_room_for(std::size_t cpus);  // allows nodes to have this many cores from now on
  // Sets how many of the node's `of` cores are free; 0 if it may get no jobs. Returns true if the
  // node has become idle (available and all cores free) or is no longer idle. Costs O(cores that
  // differ).
  bool set_free(std::uint32_t n, std::int32_t free, std::int32_t of);
  void set_spread(std::uint32_t n, bool spread);

  [[nodiscard]] std::size_t words() const { return idle_.words(); }
  // Available nodes with at least `cpus` (1 or more) cores free.
  [[nodiscard]] std::uint64_t at_least(std::int32_t cpus, std::size_t w) const {
    return static_cast<std::size_t>(cpus) < at_least_.size()
               ? at_least_[static_cast<std::size_t>(cpus)].word(w)
               : 0;
  }
  [[nodiscard]] std::int32_t most_cpus() const {
    return static_cast<std::int32_t>(at_least_.size()) - 1;
  }
  // How many available nodes have exactly this many cores free.
  [[nodiscard]] std::uint32_t count_with(std::int32_t cpus) const {
    return with_[static_cast<std::size_t>(cpus)];
  }
  [[nodiscard]] const Bits& idle() const { return idle_; }
  [[nodiscard]] std::uint64_t idle_word(std::size_t w) const { return idle_.word(w); }
  [[nodiscard]] bool any_spread() const { return spread_nodes_ > 0; }
  [[nodiscard]] std::uint64_t spread_word(std::size_t w) const { return spread_.word(w); }

  // Checks the sets for free[n] of of[n] cores free on node n: "" or the first thing that is wrong.
  [[nodiscard]] std::string audit(const std::vector<std::int32_t>& free,
                                  const std::vector<std::int32_t>& of) const;

 private:
  std::vector<std::int32_t> level_;  // by node: cores free as entered in the sets
  std::vector<Bits> at_least_;       // by number of cores; [0] unused
  std::vector<std::uint32_t> with_;  // by number of cores
  Bits idle_;
  Bits spread_;
  std::uint32_t spread_nodes_ = 0;
};

}  // namespace gantry::sched
