// The GPU and the start that a slice gets. The fullest GPU comes first (by memory slices in use),
// then the one where the slice spoils least for the profiles that the queue wants, then the lowest
// index; on the GPU an existing slice comes before a new one, then the start that spoils least.
//
// The reason: on 64 GPUs at 85 % load, taking the emptiest GPU first refuses 34 % of slice demand,
// the first GPU that fits 6 %, the fullest one 3.4 % (bench_mig). What a slice spoils is the growth
// of MigTable::fragmentation(). Empty GPUs come last in that order, so whole GPUs stay whole as
// long as possible.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ctld/sched/bits.h"
#include "ctld/sched/gpu/mig.h"

namespace gantry::sched {

// The preferences for one geometry and one mix of wanted profiles, as lookups.
class MigOrder {
 public:
  // `wanted`: a weight for each profile, how much of it the queue wants, in any unit. A profile
  // that is not wanted still counts a little, so that otherwise equal states differ. The table must
  // outlive the order.
  MigOrder(const MigTable& table, std::span<const std::uint32_t> wanted);

  [[nodiscard]] const MigTable& table() const { return *table_; }
  // Rank 0 is best; equal ranks are equally good. kNoRank: the profile does not fit.
  static constexpr std::uint16_t kNoRank = 0xFFFF;
  [[nodiscard]] std::uint16_t rank(MigState s, std::uint32_t profile) const {
    return rank_[std::size_t{s} * table_->profiles().size() + profile];
  }
  [[nodiscard]] std::uint16_t ranks(std::uint32_t profile) const { return ranks_[profile]; }
  // The best of the allowed placements that are legal in the state; nullopt if there is none.
  // `idle`: existing slices that are free; these come first.
  [[nodiscard]] std::optional<MigPlacementId> start(MigState s, std::uint64_t allowed,
                                                    std::uint64_t idle) const;
  [[nodiscard]] std::int64_t spoiled(MigState s) const { return spoiled_[s]; }

 private:
  const MigTable* table_;
  std::vector<std::int64_t> spoiled_;  // by state
  std::vector<std::uint16_t> rank_;    // by state and profile
  std::vector<std::uint16_t> ranks_;   // by profile
};

// GPUs by rank for each profile: it finds the best one for a request without looking at the others.
class MigPool {
 public:
  // `gpus` are numbered 0 .. gpus-1; none is in the pool at first.
  MigPool(const MigOrder& order, std::size_t gpus);

  void put(std::uint32_t gpu, MigState state);  // adds the GPU, or changes its state
  void take_out(std::uint32_t gpu);
  [[nodiscard]] bool has(std::uint32_t gpu) const { return state_[gpu] != kNoMigState; }

  // Calls f(gpu) for GPUs on which the profile fits, the best first, until f returns true. Returns
  // true if f did. f must not change the pool unless it returns true. `among`: only these; null =
  // all.
  template <class F>
  bool any(std::uint32_t profile, const Bits* among, F&& f) const {
    const Ranks& r = by_profile_[profile];
    for (std::size_t w = 0; w < r.filled.words(); ++w)
      for (std::uint64_t ranks = r.filled.word(w); ranks != 0; ranks &= ranks - 1) {
        const Bits& gpus = r.gpus[w * 64 + static_cast<std::size_t>(std::countr_zero(ranks))];
        for (std::size_t g = 0; g < gpus.words(); ++g) {
          const std::uint64_t word = gpus.word(g) & (among ? among->word(g) : ~std::uint64_t{0});
          if (any_in_word(word, g, f)) return true;
        }
      }
    return false;
  }

 private:
  struct Ranks {
    std::vector<Bits> gpus;            // by rank
    std::vector<std::uint32_t> count;  // number of GPUs, by rank
    Bits filled;                       // ranks that have GPUs
  };
  void move(std::uint32_t gpu, MigState from, MigState to);

  const MigOrder* order_;
  std::vector<MigState> state_;  // by GPU; kNoMigState: not in the pool
  std::vector<Ranks> by_profile_;
};

}  // namespace gantry::sched
