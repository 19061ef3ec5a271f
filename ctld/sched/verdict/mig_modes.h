// The GPUs whose MIG mode would have to change for waiting jobs. Only an operator changes it, and
// the GPU must be idle, so a change is only proposed. The proposal is made on request, from the
// replica after a plan; plans take the mode of each GPU as it is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ctld/sched/cycle/replica.h"

namespace gantry::sched {

inline constexpr std::uint32_t kMostModeSwitches = 64;  // proposals in one answer

struct ModeSwitch {
  NodeId node;
  std::string name;       // the node's name
  std::uint16_t gpu = 0;  // GpuDevice::index; no job has it or a slice of it
  std::string model;
  bool on = false;
  std::string profile;     // slices that the change would give; "" = whole GPUs
  JobId first;             // the first of the jobs that it would help
  std::uint32_t jobs = 0;  // waiting jobs of this kind, at most kJobsAsked of each line
  bool only_way = false;   // true: no GPU in the right mode can give it; false: these are in use
};

// In the order of the waiting jobs. With `for_job`: only changes that would help jobs of its class.
inline constexpr std::size_t kJobsAsked = 16;
std::vector<ModeSwitch> plan_modes(const Replica& replica, Instant now,
                                   std::optional<JobId> for_job = std::nullopt);

}  // namespace gantry::sched
