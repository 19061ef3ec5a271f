// What a placement can tell apart, across partitions: classes that ask the same of the same nodes
// are of one kind, whoever they belong to. What one of them has learnt in a plan holds for all.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "ctld/sched/bits.h"
#include "ctld/sched/geometry.h"

namespace gantry::sched {

class Kinds {
 public:
  // Numbers are valid until begin() says otherwise.
  void begin(std::uint64_t generation);  // of Eligible: its sets and their numbers

  // The number of the set's nodes: equal for sets with equal nodes.
  std::uint32_t nodes_of(std::uint32_t node_set, const Bits& nodes);
  std::uint32_t kind_of(std::uint32_t nodes, const Demand& demand);
  [[nodiscard]] std::size_t size() const { return kinds_.size(); }

 private:
  using Key =
      std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t,
                 std::uint32_t, MemoryRule, std::int64_t, std::int64_t, std::uint32_t, bool>;
  std::uint64_t generation_ = 0;
  std::vector<std::uint32_t> nodes_by_set_;
  std::multimap<std::uint64_t, std::uint32_t> by_hash_;
  std::vector<Bits> nodes_;
  std::map<Key, std::uint32_t> kinds_;
};

}  // namespace gantry::sched
