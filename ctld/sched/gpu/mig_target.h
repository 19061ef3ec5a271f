// What the wants of a plan mean for the existing GPUs: the profiles of each geometry that serve
// them, the GPUs that they may use, and how much one node could give at most.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ctld/sched/bits.h"
#include "ctld/sched/gpu/mig_plan.h"

namespace gantry::sched {

struct MigTarget {
  struct Cut {  // a profile of one geometry
    std::uint32_t table = 0, profile = 0;
  };
  std::vector<Cut> cuts;      // in order of preference
  std::optional<Bits> among;  // usable GPUs; nullopt = all
  // The most that one node gives when nothing is in use: with the present MIG modes, and with any.
  std::uint64_t most_now = 0, most_ever = 0;

  [[nodiscard]] bool has(std::uint32_t gpu) const { return !among || among->test(gpu); }
};

std::vector<MigTarget> mig_targets(const MigView& view);  // by want

// By table and profile: how many slices were asked for lately, and by the jobs that wait.
std::vector<std::vector<std::uint32_t>> mig_wanted(const MigView& view);

}  // namespace gantry::sched
