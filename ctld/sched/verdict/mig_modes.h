// Where MIG mode itself would have to change for those who wait: an operator's action, which needs
// the GPU idle, so it is proposed to people and never done. Worked out when somebody asks, from the
// replica as it is after a plan; the planner itself sees only GPUs in the mode that they are in.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ctld/sched/cycle/replica.h"

namespace gantry::sched {

inline constexpr std::uint32_t kMostModeSwitches = 64;  // in one answer

struct ModeSwitch {
  NodeId node;
  std::string name;       // of the node
  std::uint16_t gpu = 0;  // GpuDevice::index; nobody has it or a slice of it
  std::string model;
  bool on = false;
  std::string profile;     // what it would give; "" = whole GPUs
  JobId first;             // of the jobs that it would serve
  std::uint32_t jobs = 0;  // alike, that wait; of each line the first kJobsAsked are counted
  bool only_way = false;   // no GPU in the right mode could ever give it; else those are in use
};

// In the order of who waits. With `for_job`: only those that would serve jobs like it.
inline constexpr std::size_t kJobsAsked = 16;
std::vector<ModeSwitch> plan_modes(const Replica& replica, Instant now,
                                   std::optional<JobId> for_job = std::nullopt);

}  // namespace gantry::sched
