#include "ctld/core/apply/configure.h"

#include <algorithm>
#include <utility>

#include "config/gres.h"

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
  for (const PartitionConfig& c : config.partitions) {
    Partition& partition = state.partition(state.partition_ids.at(c.name));
    partition.declared = &c;
    for (const std::string& name : c.nodes)
      if (const auto it = state.node_ids.find(name); it != state.node_ids.end())
        partition.nodes.push_back(it->second);
    state.partition_order.push_back(partition.id);
    if (c.is_default) state.default_partition = partition.id;
  }
}

}  // namespace gantry::core
