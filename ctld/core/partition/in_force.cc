#include "ctld/core/partition/in_force.h"

#include <algorithm>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "config/config.h"
#include "config/partitions.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

bool sets(const PartitionRecord& said, const char* option) {
  return said.values.contains(option);
}

// Of two lists that exclude each other, the one that a command set stays.
void keep_one(std::vector<std::string>& allow, std::vector<std::string>& deny,
              const PartitionRecord& said, const char* deny_option) {
  if (allow.empty() || deny.empty()) return;
  (sets(said, deny_option) ? allow : deny).clear();
}

// The file may have changed since the command was given, so the two may contradict each other now.
void settle(PartitionConfig& p, const PartitionRecord& said, const Config& cluster,
            const std::vector<std::string_view>& nodes) {
  if (p.nodes != std::vector<std::string>{"all"})
    std::erase_if(p.nodes, [&](const std::string& name) {
      return !std::binary_search(nodes.begin(), nodes.end(), name);
    });
  keep_one(p.allow_accounts, p.deny_accounts, said, "deny_accounts");
  keep_one(p.allow_qos, p.deny_qos, said, "deny_qos");
  p.host_network_by_default = p.host_network_by_default && p.allow_host_network;
  if (p.default_time && p.max_time) p.default_time = std::min(*p.default_time, *p.max_time);
  if (p.max_nodes) p.min_nodes = std::min(p.min_nodes, *p.max_nodes);
  (void)config::check_partition(p, cluster, nodes);  // replaces `all` by all nodes
}

PartitionConfig with(PartitionConfig base, const PartitionRecord& said, const Config& cluster,
                     const std::vector<std::string_view>& nodes) {
  for (const auto& [name, text] : said.values)
    // A value that an older release accepted and this one refuses counts as not set.
    (void)config::set_partition_options(base, {{name, text}});
  settle(base, said, cluster, nodes);
  return base;
}

}  // namespace

std::vector<PartitionConfig> partitions_in_force(const std::vector<PartitionConfig>& file,
                                                 const Config& cluster, const State& state) {
  const std::vector<std::string_view> nodes = config::node_names(cluster);
  std::vector<PartitionConfig> out;
  std::optional<std::string> chosen;  // the default that a command chose
  const auto add = [&](PartitionConfig base, const PartitionRecord& said) {
    out.push_back(said.values.empty() ? std::move(base)
                                      : with(std::move(base), said, cluster, nodes));
    if (out.back().is_default && sets(said, "default")) chosen = out.back().name;
  };
  for (const PartitionConfig& p : file) {
    const auto id = state.partition_ids.find(p.name);
    if (id == state.partition_ids.end()) {
      out.push_back(p);
      continue;
    }
    const Partition& said = state.partition(id->second);
    if (said.origin == PartitionOrigin::file) add(p, said);
  }
  for (const Partition& said : state.partitions) {
    if (said.origin != PartitionOrigin::command) continue;
    PartitionConfig base;
    base.name = said.name;
    add(std::move(base), said);
  }
  if (chosen)
    for (PartitionConfig& p : out) p.is_default = p.name == *chosen;
  return out;
}

void configure_partitions(MutableState& state, const Config& config) {
  state.partition_order.clear();
  state.default_partition.reset();
  for (Partition& p : state.partitions) {
    if (!p.tenant.empty()) continue;
    p.declared = nullptr;
    p.nodes.clear();
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

std::vector<std::string> said_beside_the_file(const State& state) {
  std::vector<std::string> out;
  for (const Partition& p : state.partitions) {
    if (p.origin == PartitionOrigin::command)
      out.push_back(fmt::format("partition {} is as commands made it, at last one of {}", p.name,
                                p.changed_by));
    else if (p.origin == PartitionOrigin::removed)
      out.push_back(
          fmt::format("partition {} is left out: {} deleted it by a command; gctl "
                      "partition reset {} brings it back",
                      p.name, p.changed_by, p.name));
    else if (!p.values.empty()) {
      std::vector<std::string_view> names;
      for (const auto& [name, text] : p.values) names.push_back(name);
      out.push_back(
          fmt::format("partition {}: commands go before gantry.yaml in {}, at last one "
                      "of {}; gctl partition reset {} ends that",
                      p.name, fmt::join(names, ", "), p.changed_by, p.name));
    }
  }
  return out;
}

}  // namespace gantry::core
