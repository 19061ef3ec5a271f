// The partitions in force: what gantry.yaml and the commands of administrators say together.
//
// A command goes before the file, option by option, until it is reset; so a partition is the same
// after a restart and after the file was read again. What no command has set follows the file.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"
#include "ctld/core/state/mutable_state.h"

namespace gantry::core {

// In the file's order, then those that commands made, by id. At most one is the default. What a
// command set and is no longer possible is left out: a node that is gone, or a list beside one that
// the file has now.
std::vector<PartitionConfig> partitions_in_force(const std::vector<PartitionConfig>& file,
                                                 const Config& cluster, const State& state);

// Sets those members of whole partitions that come from `config`, and their order. Tenants' queues
// and parts have to be made anew after it (tenancy/queues.h). State keeps addresses in `config`.
void configure_partitions(MutableState& state, const Config& config);

// What commands say beside gantry.yaml, a line for each partition: for the log, at a start.
std::vector<std::string> said_beside_the_file(const State& state);

}  // namespace gantry::core
