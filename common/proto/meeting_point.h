// MASTER_ADDR: the address at which the tasks of a step connect to each other if PyTorch's
// launchers started them.
#pragma once

#include <map>
#include <string>

#include "common/proto/steps.h"

namespace gantry {

// The host of an address: "10.0.0.1" for "10.0.0.1:6871", "::1" for "[::1]:6871".
inline std::string host_of(const std::string& address) {
  std::string host = address.substr(0, address.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host;
}

// MASTER_ADDR, the step's first node, and MASTER_PORT, a port below Linux's ephemeral ports that is
// computed from the job and the step.
inline std::map<std::string, std::string> meeting_point(const proto::StepPermission& permission) {
  constexpr std::uint64_t kFirstPort = 20'000, kPorts = 10'000;
  const std::uint64_t made = permission.key.job.value() * 16 + permission.step.value();
  return {{"MASTER_ADDR", host_of(permission.nodes.front().address)},
          {"MASTER_PORT", std::to_string(kFirstPort + made % kPorts)}};
}

}  // namespace gantry
