#include "ctld/sched/kinds.h"

namespace gantry::sched {
namespace {

constexpr std::uint32_t kUnknown = ~std::uint32_t{0};

std::uint64_t hash_of(const Bits& bits) {
  std::uint64_t h = bits.words();
  for (std::size_t w = 0; w < bits.words(); ++w)
    h = (h ^ bits.word(w)) * 0x9E3779B97F4A7C15ull, h ^= h >> 29;
  return h;
}

}  // namespace

void Kinds::begin(std::uint64_t generation) {
  if (generation == generation_) return;
  *this = Kinds{};
  generation_ = generation;
}

std::uint32_t Kinds::nodes_of(std::uint32_t node_set, const Bits& nodes) {
  if (nodes_by_set_.size() <= node_set) nodes_by_set_.resize(node_set + 1, kUnknown);
  std::uint32_t& number = nodes_by_set_[node_set];
  if (number != kUnknown) return number;
  const std::uint64_t hash = hash_of(nodes);
  for (auto [it, end] = by_hash_.equal_range(hash); it != end; ++it)
    if (nodes_[it->second] == nodes) return number = it->second;
  number = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back(nodes);
  by_hash_.emplace(hash, number);
  return number;
}

std::uint32_t Kinds::kind_of(std::uint32_t nodes, const Demand& d) {
  const Key key{nodes,         d.min_nodes, d.max_nodes, d.tasks, d.most_per_node, d.cpus_per_task,
                d.memory_rule, d.memory,    d.scratch,   d.gpus,  d.exclusive};
  return kinds_.emplace(key, static_cast<std::uint32_t>(kinds_.size())).first->second;
}

}  // namespace gantry::sched
