#include "ctld/core/apply/configure.h"

#include <algorithm>
#include <utility>

#include "config/config.h"
#include "config/gres.h"
#include "ctld/core/state/state.h"

namespace gantry::core {

void configure(MutableState& state, const Config& config) {
  state.gres_names = gres_names(config);
  for (const GresCount& g : declared_licenses(config)) state.licenses[g.name].total = g.count;
  for (auto& [name, license] : state.licenses) license.most = std::max(license.total, license.used);
  for (const NodeConfig& c : config.nodes) {
    Node& node = state.node(state.node_ids.at(c.name));
    node.declared = &c;
    for (DeclaredGres& g : declared_gres(c)) node.gres.push_back({std::move(g.name), g.count});
    if (c.cpu_ids)
      node.cpus = *c.cpu_ids;
    else
      for (std::uint32_t cpu = 0; cpu < c.cpus; ++cpu)
        node.cpus.push_back(static_cast<std::uint16_t>(cpu));
    std::sort(node.cpus.begin(), node.cpus.end());
    state.node_order.push_back(node.id);
  }
}

}  // namespace gantry::core
