// Xids that the kernel has logged, for the time in which no daemon received the driver's events.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "noded/gpu/health/xid.h"

namespace gantry::gpu {

struct LoggedXid {
  Duration at{};  // since the machine was started
  XidLine line;
};

// Xids of /dev/kmsg that came after `since` (runtime::since_boot()), in their order; none if the
// file cannot be read.
std::vector<LoggedXid> logged_xids(const std::string& kmsg, Duration since);

}  // namespace gantry::gpu
