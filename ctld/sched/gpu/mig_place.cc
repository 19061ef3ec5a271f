#include "ctld/sched/gpu/mig_place.h"

#include <algorithm>
#include <bit>

#include "common/assert.h"

namespace gantry::sched {

MigOrder::MigOrder(const MigTable& table, std::span<const std::uint32_t> wanted) : table_(&table) {
  const std::size_t n = table.profiles().size();
  GANTRY_ASSERT(wanted.size() == n, "a weight for each profile");
  std::uint64_t sum = 1;
  for (const std::uint32_t w : wanted) sum += w;
  std::vector<std::uint32_t> weight(n);
  for (std::size_t p = 0; p < n; ++p)
    weight[p] = 1 + static_cast<std::uint32_t>(std::uint64_t{wanted[p]} * 1000 / sum);
  for (std::size_t s = 0; s < table.states(); ++s)
    spoiled_.push_back(table.fragmentation(static_cast<MigState>(s), weight));

  rank_.assign(table.states() * n, kNoRank);
  ranks_.assign(n, 0);
  struct Key {
    std::uint32_t free = 0;
    std::int64_t growth = 0;
    MigState state = 0;
  };
  std::vector<Key> keys;
  for (std::uint32_t p = 0; p < n; ++p) {
    keys.clear();
    for (std::size_t i = 0; i < table.states(); ++i) {
      const auto s = static_cast<MigState>(i);
      if (const auto at = start(s, table.placements_of(p), 0))
        keys.push_back({table.memory_free(s), spoiled_[table.with(s, *at)] - spoiled_[s], s});
    }
    std::sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) {
      return std::tie(a.free, a.growth, a.state) < std::tie(b.free, b.growth, b.state);
    });
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (i == 0 || keys[i].free != keys[i - 1].free || keys[i].growth != keys[i - 1].growth)
        ++ranks_[p];
      rank_[keys[i].state * n + p] = static_cast<std::uint16_t>(ranks_[p] - 1);
    }
  }
}

std::optional<MigPlacementId> MigOrder::start(MigState s, std::uint64_t allowed,
                                              std::uint64_t idle) const {
  std::uint64_t left = table_->legal(s) & allowed;
  if ((left & idle) != 0) left &= idle;
  std::optional<MigPlacementId> best;
  for (; left != 0; left &= left - 1) {
    const auto p = static_cast<MigPlacementId>(std::countr_zero(left));
    if (!best || spoiled_[table_->with(s, p)] < spoiled_[table_->with(s, *best)]) best = p;
  }
  return best;
}

MigPool::MigPool(const MigOrder& order, std::size_t gpus)
    : order_(&order), state_(gpus, kNoMigState), by_profile_(order.table().profiles().size()) {
  for (std::uint32_t p = 0; p < by_profile_.size(); ++p) {
    Ranks& r = by_profile_[p];
    r.gpus.resize(order.ranks(p));
    for (Bits& b : r.gpus) b.resize(gpus);
    r.count.assign(order.ranks(p), 0);
    r.filled.resize(order.ranks(p));
  }
}

void MigPool::put(std::uint32_t gpu, MigState state) {
  GANTRY_ASSERT(state != kNoMigState, "only legal layouts are in the pool");
  move(gpu, state_[gpu], state);
}

void MigPool::take_out(std::uint32_t gpu) {
  move(gpu, state_[gpu], kNoMigState);
}

void MigPool::move(std::uint32_t gpu, MigState from, MigState to) {
  state_[gpu] = to;
  for (std::uint32_t p = 0; p < by_profile_.size(); ++p) {
    Ranks& r = by_profile_[p];
    const std::uint16_t old = from == kNoMigState ? MigOrder::kNoRank : order_->rank(from, p);
    const std::uint16_t now = to == kNoMigState ? MigOrder::kNoRank : order_->rank(to, p);
    if (old == now) continue;
    if (old != MigOrder::kNoRank) {
      r.gpus[old].clear(gpu);
      if (--r.count[old] == 0) r.filled.clear(old);
    }
    if (now != MigOrder::kNoRank) {
      r.gpus[now].set(gpu);
      if (r.count[now]++ == 0) r.filled.set(now);
    }
  }
}

}  // namespace gantry::sched
