#include "config/partitions.h"

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "common/tenancy/use_limits.h"
#include "common/text/split.h"
#include "config/nearest.h"
#include "config/options.h"

namespace gantry::config {
namespace {

Result<void> set_one(const std::vector<Option>& options, const std::string& name,
                     const std::string& text) {
  const auto option =
      std::find_if(options.begin(), options.end(), [&](const Option& o) { return o.name == name; });
  if (option == options.end() || name == "name") {
    std::vector<std::string_view> names;
    for (const Option& one : options)
      if (one.name != "name") names.push_back(one.name);
    return fail(ErrorCode::invalid_argument,
                fmt::format("partitions have no option `{}` that a command can set{}", name,
                            did_you_mean(name, names)));
  }
  Result<void> done;
  if (const auto* member = std::get_if<std::string*>(&option->member); member && text.empty()) {
    (*member)->clear();  // as if the option were left out
    return {};
  }
  if (!takes_list(*option)) {
    done = set_option(*option, text);
  } else if (option->rule.form == Form::node_names && !text.empty()) {
    done = set_option(*option, text);  // commas are also inside of brackets: n[1-3,5],m1
  } else {
    const std::vector<std::string> items = split_list(text);
    done = set_option(*option, items);
  }
  if (done) return {};
  return fail(done.error().code, fmt::format("{}: {}", name, done.error().message));
}

}  // namespace

Result<void> set_partition_options(PartitionConfig& partition, const PartitionValues& values) {
  const std::vector<Option> options = options_of(partition);
  for (const auto& [name, text] : values)
    if (auto done = set_one(options, name, text); !done) return done;
  return {};
}

std::optional<PartitionFault> check_partition(PartitionConfig& partition, const Config& cluster,
                                              std::span<const std::string_view> nodes) {
  const auto there = [&](std::string_view name) {
    return std::binary_search(nodes.begin(), nodes.end(), name);
  };
  if (partition.host_network_by_default && !partition.allow_host_network)
    return PartitionFault{"host_network_by_default",
                          "needs `allow_host_network: true`, as jobs could not ask for it"};
  if (!partition.allow_accounts.empty() && !partition.deny_accounts.empty())
    return PartitionFault{"deny_accounts", "is of no use beside allow_accounts"};
  if (!partition.allow_qos.empty() && !partition.deny_qos.empty())
    return PartitionFault{"deny_qos", "is of no use beside allow_qos"};
  if (const auto weights = tenancy::read_billing_weights(partition.billing_weights); !weights)
    return PartitionFault{"billing_weights", weights.error().message};
  if (partition.nodes == std::vector<std::string>{"all"} && !there("all")) {
    partition.nodes.clear();
    for (const NodeConfig& node : cluster.nodes) partition.nodes.push_back(node.name);
  }
  std::set<std::string> members;
  for (const std::string& node : partition.nodes) {
    if (!there(node))
      return PartitionFault{
          "nodes", fmt::format("there is no node `{}`{}", node, did_you_mean(node, nodes))};
    if (!members.insert(node).second)
      return PartitionFault{"nodes", fmt::format("names `{}` twice", node)};
  }
  if (partition.default_time && partition.max_time && *partition.default_time > *partition.max_time)
    return PartitionFault{"default_time", "is longer than max_time"};
  if (partition.max_nodes && partition.min_nodes > *partition.max_nodes)
    return PartitionFault{"min_nodes", "is more than max_nodes"};
  return std::nullopt;
}

std::vector<std::string_view> node_names(const Config& cluster) {
  std::vector<std::string_view> names;
  for (const NodeConfig& node : cluster.nodes) names.push_back(node.name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace gantry::config
