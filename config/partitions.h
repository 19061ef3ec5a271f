// Partitions, wherever they come from: gantry.yaml, or commands of administrators. Both name the
// same options and keep the same rules.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "config/config.h"

namespace gantry::config {

// Options by their names in gantry.yaml, in the form that they have there; the items of a list are
// separated by commas.
using PartitionValues = std::map<std::string, std::string>;

// Sets the options. The error names the option, and what is wrong with it.
Result<void> set_partition_options(PartitionConfig& partition, const PartitionValues& values);

// An error of a partition: the option, and the rest of a sentence about it.
struct PartitionFault {
  std::string_view option;
  std::string what;
};
// Replaces the word `all` by the names of all nodes, then checks the options together. `nodes` are
// the names of the cluster's nodes, sorted. A partition without nodes is valid.
std::optional<PartitionFault> check_partition(PartitionConfig& partition, const Config& cluster,
                                              std::span<const std::string_view> nodes);

// The names of the cluster's nodes, sorted; they point into `cluster`.
std::vector<std::string_view> node_names(const Config& cluster);

}  // namespace gantry::config
