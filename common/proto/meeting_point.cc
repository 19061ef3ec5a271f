#include "common/proto/meeting_point.h"

namespace gantry {
namespace {

constexpr std::uint64_t kFirstPort = 20'000;
constexpr std::uint64_t kPorts = 10'000;

}  // namespace

std::string host_of(const std::string& address) {
  std::string host = address.substr(0, address.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host;
}

std::map<std::string, std::string> meeting_point(const proto::StepPermission& permission) {
  const std::uint64_t made = permission.key.job.value() * 16 + permission.step.value();
  return {{"MASTER_ADDR", host_of(permission.nodes.front().address)},
          {"MASTER_PORT", std::to_string(kFirstPort + made % kPorts)}};
}

}  // namespace gantry
