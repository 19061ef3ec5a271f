// The partitions in force: the settings of gantry.yaml, changed by the commands of administrators.
//
// For each option a command overrides the file until it is reset. So a partition stays the same
// after a restart and after the file was read again. Options that no command has set follow the
// file.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"
#include "ctld/core/state/mutable_state.h"

namespace gantry::core {

// In the file's order, then those that commands made, by id. At most one is the default. A setting
// of a command that is no longer possible is left out: a node that is gone, or a list that
// contradicts one in the file.
std::vector<PartitionConfig> partitions_in_force(const std::vector<PartitionConfig>& file,
                                                 const Config& cluster, const State& state);

// Sets those members of whole partitions that come from `config`, and their order. Tenants' queues
// have to be made again afterwards (tenancy/queues.h). State keeps addresses in `config`.
void configure_partitions(MutableState& state, const Config& config);

// What commands have changed against gantry.yaml, a line for each partition: for the log, at a
// start.
std::vector<std::string> said_beside_the_file(const State& state);

}  // namespace gantry::core
