// The ways to partition GPUs of one model, compiled from what their driver reports
// (common/resources/gpu.h): every state that legal layouts can be in, and what still fits in each
// state, as tables.
//
// A layout is a set of placements (a profile at a start). It is legal when no two of them share a
// memory slice, their compute slices are no more than the GPU's, and no profile occurs more often
// than its driver allows. Profiles with media engines ("+me", "+me.all") share one set of them:
// together they may occur only as often as the most frequent of them may. Every part of a legal
// layout is legal, so the order in which instances are made or destroyed never matters.
//
// Layouts that allow the same next steps are in one state. A state consists of the memory slices in
// use, the number of compute slices in use and, for each limit that can bind, the number of its
// instances. An 8-slice GPU has 2,319 layouts, 336 pairs of memory mask and compute slices, and 656
// states (one bit more for "+me"); an A30 has 76 layouts and 31 states. State 0 is empty; a step to
// more use has a higher number.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ctld/sched/gpu/mig_catalog.h"

namespace gantry::sched {

inline constexpr std::uint32_t kMostMigStates = 1 << 14;

using MigState = std::uint16_t;
inline constexpr MigState kNoMigState = 0xFFFF;

// The profiles and placements of a model, with the states that their layouts can be in.
class MigTable : public MigCatalog {
 public:
  // Error malformed: the driver's report makes no sense, or needs more than kMostMigStates states.
  static Result<MigTable> compile(const MigGeometry& geometry);

  // ---- states
  [[nodiscard]] std::size_t states() const { return state_.size(); }
  [[nodiscard]] std::uint32_t mask(MigState s) const { return state_[s].mask; }
  [[nodiscard]] std::uint32_t compute_used(MigState s) const { return state_[s].compute; }
  [[nodiscard]] std::uint32_t memory_used(MigState s) const { return state_[s].memory; }
  [[nodiscard]] std::uint32_t memory_free(MigState s) const {
    return memory_slices() - memory_used(s);
  }
  // A bit for each placement that is possible in the state.
  [[nodiscard]] std::uint64_t legal(MigState s) const { return state_[s].legal; }
  [[nodiscard]] std::uint64_t legal(MigState s, std::uint32_t profile) const {
    return state_[s].legal & placements_of(profile);
  }
  // The state after adding p; kNoMigState if that is not legal.
  [[nodiscard]] MigState with(MigState s, MigPlacementId p) const {
    return next_[std::size_t{s} * placements().size() + p];
  }
  // The state after removing p from a layout that has it; asserts that, as far as the state shows
  // it.
  [[nodiscard]] MigState without(MigState s, MigPlacementId p) const;
  // The state of a layout, in any order; kNoMigState if the layout is not legal.
  [[nodiscard]] MigState state_of(std::span<const MigPlacementId> layout) const;
  [[nodiscard]] MigState state_of(std::uint64_t layout) const;  // as bits, each placement once

  // How many more of the profile fit at once.
  [[nodiscard]] std::uint32_t fits(MigState s, std::uint32_t profile) const {
    return fits_[std::size_t{s} * profiles().size() + profile];
  }
  // The profile with the most memory, then compute slices (then the lowest index) that fits.
  [[nodiscard]] std::optional<std::uint32_t> largest(MigState s) const;

  // The free memory that the wanted profiles cannot use, in memory slices times weight:
  //   sum over p of weight(p) * (free - fits(p) * memory slices of p)
  // This is FGD's measure (fragment.h); memory that remains next to the profiles that fit counts,
  // too.
  [[nodiscard]] std::int64_t fragmentation(MigState s, std::span<const std::uint32_t> weight) const;

 private:
  struct State {
    std::uint32_t memory = 0;  // in use; the first member, so that fuller states sort later
    std::uint32_t mask = 0, compute = 0;
    std::uint64_t counts = 0;  // 4 bits for each limit
    std::uint64_t legal = 0;   // bits of legal placements; follows from the others
    friend auto operator<=>(const State&, const State&) = default;
  };
  struct Limit {                 // the most instances of these profiles together
    std::uint32_t profiles = 0;  // bits
    std::uint32_t most = 0;
  };
  explicit MigTable(MigCatalog catalog) : MigCatalog(std::move(catalog)) {}
  void find_limits();
  [[nodiscard]] bool add(State& s, MigPlacementId p) const;
  bool find_states();
  void count_fits();

  std::vector<Limit> limits_;  // only limits that can be reached
  std::vector<State> state_;   // ascending
  std::vector<MigState> next_, before_;
  std::vector<std::uint8_t> fits_;
};

}  // namespace gantry::sched
