// Alibaba's openb trace of 2023 (Weng et al., USENIX ATC 2023): placement without departures.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ctld/sched/fragment.h"

namespace gantry::sched {

struct Openb {
  std::vector<DeviceRoom> nodes;
  std::vector<DeviceNeed> tasks;
  std::uint64_t gpus = 0;  // devices of all nodes
};

// nullopt where the files are absent.
std::optional<Openb> read_openb(const std::string& nodes, const std::string& tasks);

struct OpenbResult {
  double allocated = 0;  // GPUs in use at the end, percent of all
  std::size_t placed = 0, refused = 0, signatures = 0;
};
// The tasks in random order, resampled ones after them until the GPUs asked for are 130 % of all;
// each is placed on arrival or refused; nothing leaves.
OpenbResult run_openb(const Openb& openb, std::uint64_t seed);

}  // namespace gantry::sched
