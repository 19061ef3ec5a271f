// What GPUs of one model can be cut into, compiled from what their driver says
// (common/resources/gpu.h): every state that legal layouts can be in, and what each still has room
// for, as lookups.
//
// A layout is a set of placements (a profile at a start). It is legal when no two of them share a
// memory slice, their compute slices are no more than the GPU's, and no profile is there more often
// than its driver allows; profiles with media engines ("+me", "+me.all") share one set of them, so
// that there are no more of those together than of the one that may be there most often. Every part
// of a legal layout is legal, so the order in which instances are made or destroyed never matters.
//
// A state is what layouts have in common that allow the same next steps: the memory slices in use,
// how many compute slices, and how many of the profiles whose limit can bind. An 8-slice GPU
// has 2,319 layouts, 336 pairs of memory mask and compute slices, and 656 states (one bit more for
// "+me"); an A30 has 76 layouts and 31 states. State 0 is empty; a step to more use has a higher
// number.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/resources/gpu.h"
#include "common/result.h"

namespace gantry::sched {

inline constexpr std::uint32_t kMostMigSlices = 16;      // memory or compute slices of a GPU
inline constexpr std::uint32_t kMostMigPlacements = 64;  // of all profiles together
inline constexpr std::uint32_t kMostMigStates = 1 << 14;
inline constexpr std::uint32_t kMostMigProfiles = 32;

using MigState = std::uint16_t;
inline constexpr MigState kNoMigState = 0xFFFF;

struct MigPlacement {
  std::uint8_t profile = 0;  // index into MigTable::profiles()
  std::uint8_t start = 0;    // memory slice
  std::uint32_t mask = 0;    // memory slices, bit 0 first
  friend bool operator==(const MigPlacement&, const MigPlacement&) = default;
};
using MigPlacementId = std::uint8_t;  // index into MigTable::placements()

// A part of a GPU, exactly: compute / of_compute of its compute, memory / of_memory of its memory.
struct MigShare {
  std::uint32_t compute = 0, of_compute = 1;
  std::uint32_t memory = 0, of_memory = 1;
  // What quota, fair share and usage count: the mean of both parts, rounded down. It adds up to at
  // most 1000 for every legal layout, and a whole GPU is 1000. The larger of both parts would not
  // do: 4g + 3g, which fill an 8-slice GPU, would be 571 + 500.
  [[nodiscard]] GpuThousandths thousandths() const;
  friend bool operator==(const MigShare&, const MigShare&) = default;
};

class MigTable {
 public:
  // malformed: what the driver said makes no sense, or needs more states than kMostMigStates.
  static Result<MigTable> compile(const MigGeometry& geometry);

  [[nodiscard]] const std::string& model() const { return model_; }
  [[nodiscard]] std::uint32_t compute_slices() const { return compute_; }
  [[nodiscard]] std::uint32_t memory_slices() const { return memory_; }
  [[nodiscard]] std::span<const MigProfile> profiles() const { return profiles_; }
  [[nodiscard]] std::optional<std::uint32_t> profile_named(std::string_view name) const;
  [[nodiscard]] std::optional<std::uint32_t> profile_of_id(std::uint32_t id) const;
  // The one that takes all compute and all memory slices, if there is one.
  [[nodiscard]] std::optional<std::uint32_t> full_profile() const { return full_; }
  [[nodiscard]] MigShare share(std::uint32_t profile) const;

  [[nodiscard]] std::span<const MigPlacement> placements() const { return placements_; }
  [[nodiscard]] std::uint64_t placements_of(std::uint32_t profile) const { return of_[profile]; }
  [[nodiscard]] std::optional<MigPlacementId> placement(std::uint32_t profile,
                                                        std::uint32_t start) const;

  // ---- states
  [[nodiscard]] std::size_t states() const { return state_.size(); }
  [[nodiscard]] std::uint32_t mask(MigState s) const { return state_[s].mask; }
  [[nodiscard]] std::uint32_t compute_used(MigState s) const { return state_[s].compute; }
  [[nodiscard]] std::uint32_t memory_used(MigState s) const { return state_[s].memory; }
  [[nodiscard]] std::uint32_t memory_free(MigState s) const { return memory_ - memory_used(s); }
  // A bit for each placement that is possible now.
  [[nodiscard]] std::uint64_t legal(MigState s) const { return state_[s].legal; }
  [[nodiscard]] std::uint64_t legal(MigState s, std::uint32_t profile) const {
    return state_[s].legal & of_[profile];
  }
  // kNoMigState if that is not legal.
  [[nodiscard]] MigState with(MigState s, MigPlacementId p) const {
    return next_[std::size_t{s} * placements_.size() + p];
  }
  // Of a layout that has p; asserted as far as the state shows it.
  [[nodiscard]] MigState without(MigState s, MigPlacementId p) const;
  // Of a layout, in any order; kNoMigState if it is not legal.
  [[nodiscard]] MigState state_of(std::span<const MigPlacementId> layout) const;
  [[nodiscard]] MigState state_of(std::uint64_t layout) const;  // as bits, each placement once

  // How many more of the profile fit at once.
  [[nodiscard]] std::uint32_t fits(MigState s, std::uint32_t profile) const {
    return fits_[std::size_t{s} * profiles_.size() + profile];
  }
  // The profile with the most memory, then compute slices (then the lowest index) that fits.
  [[nodiscard]] std::optional<std::uint32_t> largest(MigState s) const;

  // What of the free memory the wanted profiles cannot use, in memory slices times weight:
  //   sum over p of weight(p) * (free - fits(p) * memory slices of p)
  // This is FGD's measure (fragment.h) with the free part that is left over beside those that fit.
  [[nodiscard]] std::int64_t fragmentation(MigState s, std::span<const std::uint32_t> weight) const;

 private:
  struct State {
    std::uint32_t memory = 0;  // in use; first, so that fuller ones come later
    std::uint32_t mask = 0, compute = 0;
    std::uint64_t counts = 0;  // 4 bits for each limit
    std::uint64_t legal = 0;   // placements; follows from the others
    friend auto operator<=>(const State&, const State&) = default;
  };
  struct Limit {                 // at most so many instances of these profiles together
    std::uint32_t profiles = 0;  // bits
    std::uint32_t most = 0;
  };
  MigTable() = default;
  void find_limits();
  [[nodiscard]] bool add(State& s, MigPlacementId p) const;
  bool find_states();
  void count_fits();

  std::string model_;
  std::uint32_t compute_ = 0, memory_ = 0;
  std::vector<MigProfile> profiles_;
  std::optional<std::uint32_t> full_;
  std::vector<MigPlacement> placements_;
  std::vector<std::uint64_t> of_;  // by profile: its placements
  std::vector<Limit> limits_;      // only those that can bind
  std::vector<State> state_;       // ascending
  std::vector<MigState> next_, before_;
  std::vector<std::uint8_t> fits_;
};

}  // namespace gantry::sched
