#include "ctld/replay/places.h"

#include <algorithm>
#include <map>
#include <utility>

namespace gantry::replay {

bool could_have_place(const std::vector<std::int64_t>& room, const std::vector<HeldUnits>& held,
                      const std::vector<std::int64_t>& excess, std::uint32_t nodes,
                      std::int64_t each) {
  struct OfTenant {
    std::int64_t units = 0, largest = 0;
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, OfTenant> there;  // by node and tenant
  for (const HeldUnits& h : held) {
    if (excess[h.tenant] <= 0) continue;
    OfTenant& t = there[{h.node, h.tenant}];
    t.units += h.units;
    t.largest = std::max(t.largest, h.of_job);
  }
  std::vector<std::int64_t> most = room;
  for (const auto& [at, t] : there)
    most[at.first] += std::min(t.units, excess[at.second] - 1 + t.largest);
  const auto able =
      std::count_if(most.begin(), most.end(), [&](auto units) { return units >= each; });
  return able >= static_cast<std::ptrdiff_t>(nodes);
}

}  // namespace gantry::replay
