#include "gate/plan/weights.h"

#include <algorithm>
#include <cmath>

namespace gantry::gate {
namespace {

constexpr Duration kForgotten = seconds(10);
constexpr double kChange = 2;     // at most, from one look to the next
constexpr double kNothing = 0.1;  // of the weight: too little to change it

}  // namespace

std::map<std::string, std::uint32_t> weights_of(
    const std::map<std::string, std::uint32_t>& now_have,
    const std::map<std::string, ReplicaTimes>& times, Instant now) {
  const auto mean = [&](const std::string& server) {
    const auto it = times.find(server);
    return it == times.end() || now - it->second.last > kForgotten ? 0 : it->second.mean_us;
  };
  double fastest = 0;
  for (const auto& [server, weight] : now_have)
    if (const double time = mean(server); time > 0 && (fastest == 0 || time < fastest))
      fastest = time;
  std::map<std::string, std::uint32_t> out;
  for (const auto& [server, weight] : now_have) {
    const double time = mean(server), old = weight;
    const double exact = time == 0 ? kFullWeight : kFullWeight * fastest / time;
    const double near = std::clamp(exact, old / kChange, old * kChange);
    const bool same = std::abs(near - old) < old * kNothing;
    out[server] =
        same ? weight
             : std::clamp(static_cast<std::uint32_t>(std::lround(near)), kLeastWeight, kFullWeight);
  }
  return out;
}

}  // namespace gantry::gate
