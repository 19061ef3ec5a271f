#include "ctld/sched/nodes/search_sets.h"

#include <utility>

#include <fmt/core.h>

namespace gantry::sched {

void SearchSets::resize(std::size_t nodes) {
  level_.resize(nodes, 0);
  idle_.resize(nodes);
  spread_.resize(nodes);
  for (Bits& set : at_least_) set.resize(nodes);
}

void SearchSets::make_room_for(std::size_t cpus) {
  while (at_least_.size() <= cpus) {
    at_least_.emplace_back().resize(level_.size());
    with_.push_back(0);
  }
}

bool SearchSets::set_free(std::uint32_t n, std::int32_t free, std::int32_t of) {
  const std::int32_t old = std::exchange(level_[n], free);
  for (std::int32_t c = old; c > free; --c) at_least_[static_cast<std::size_t>(c)].clear(n);
  for (std::int32_t c = old + 1; c <= free; ++c) at_least_[static_cast<std::size_t>(c)].set(n);
  if (old > 0) --with_[static_cast<std::size_t>(old)];
  if (free > 0) ++with_[static_cast<std::size_t>(free)];
  const bool idle = free > 0 && free == of;
  if (idle_.test(n) == idle) return false;
  if (idle)
    idle_.set(n);
  else
    idle_.clear(n);
  return true;
}

void SearchSets::set_spread(std::uint32_t n, bool spread) {
  if (spread_.test(n)) --spread_nodes_;
  spread_.clear(n);
  if (!spread) return;
  spread_.set(n);
  ++spread_nodes_;
}

std::string SearchSets::audit(const std::vector<std::int32_t>& free,
                              const std::vector<std::int32_t>& of) const {
  std::vector<std::uint32_t> with(with_.size(), 0);
  for (std::uint32_t n = 0; n < level_.size(); ++n) {
    const std::int32_t level = free[n];
    if (level_[n] != level)
      return fmt::format("node {}: level {} instead of {}", n, level_[n], level);
    if (level > 0) ++with[static_cast<std::size_t>(level)];
    for (std::size_t c = 1; c < at_least_.size(); ++c)
      if (at_least_[c].test(n) != (static_cast<std::int32_t>(c) <= level))
        return fmt::format("node {} is wrong in the set of {} free cores", n, c);
    if (idle_.test(n) != (level > 0 && level == of[n])) return fmt::format("node {}: idle", n);
  }
  return with == with_ ? "" : "counts per level";
}

}  // namespace gantry::sched
