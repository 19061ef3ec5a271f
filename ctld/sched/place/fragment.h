// Fragmentation of GPUs, after FGD (Weng et al., "Beware of Fragmentation", USENIX ATC 2023). For
// expected requests m of frequency p_m, and a node n:
//
//   F_n(m) = free GPU capacity of n that jobs like m could not use if they were alone there: it
//            lies on GPUs with less free than m needs of each, or the cores or the memory do not
//            suffice for it
//   F_n    = sum over m of p_m F_n(m)
//   score  = round(50 / (1 + exp((F_n after - F_n before) / 1 GPU)))
//
// FGD counts a node as good for m when one more m fits. Here its cores and memory must suffice for
// all of its free GPUs, so a node whose cores run out first is noticed in time. Requests without
// GPUs can use none of the capacity: their F_n(m) is all of it. The score is rounded on purpose: it
// makes near-equal nodes equal, and the order among these packs them (docs/decisions/placement.md,
// 123).
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "common/quantity.h"

namespace gantry::sched {

// Free room is compared with needs in the innermost loop, so thousandths are plain numbers here;
// gpu_scores.cc converts quantities to them.
inline constexpr auto kWholeGpu = static_cast<std::uint16_t>(kOneGpu.value());
inline constexpr std::size_t kMostGpus = 16;  // GPUs of a node that are considered
inline constexpr int kMostScore = 50;

struct GpuRoom {  // what a node has free
  std::int32_t cpus = 0;
  std::int64_t memory = 0;                      // bytes
  std::uint32_t gpus = 0;                       // devices that are not all taken, at most kMostGpus
  std::array<std::uint16_t, kMostGpus> free{};  // free thousandths of each
};

struct GpuNeed {  // what a job needs on one node
  std::int32_t cpus = 0;
  std::int64_t memory = 0;  // 0 = memory does not limit it
  std::uint32_t gpus = 0;   // whole GPUs, or
  std::uint32_t part = 0;   // thousandths of one GPU
  [[nodiscard]] bool any() const { return gpus + part > 0; }
  friend auto operator<=>(const GpuNeed&, const GpuNeed&) = default;
};

// How many requests of each kind there are, or are expected.
using GpuMix = std::map<GpuNeed, std::uint64_t>;

class Fragmentation {
 public:
  static constexpr std::size_t kMostNeeds = 64;
  // Keeps the most frequent requests for GPUs, which make up 95 % of them (at most kMostNeeds), and
  // the requests without GPUs, which count for at most a quarter.
  explicit Fragmentation(const GpuMix& mix = {});

  [[nodiscard]] bool knows_any() const { return !expected_.empty(); }
  [[nodiscard]] double amount(const GpuRoom& room) const;  // F_n, in thousandths of a GPU
  // 0 to kMostScore; more is better. `before` is amount() of the node as it is.
  [[nodiscard]] int score(double before, const GpuRoom& after) const;

 private:
  struct Expected {
    GpuNeed need;
    double frequency = 0;
  };
  std::vector<Expected> expected_;
  double without_gpus_ = 0;  // frequency of requests without GPUs; all frequencies add up to 1
};

}  // namespace gantry::sched
