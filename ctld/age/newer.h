// What a node's registration proves: that a controller with a newer store than ours has spoken to
// it. No order leaves before its events are committed, so a node can never know more than the store
// that it serves, unless that store was put back to an older copy.
#pragma once

#include <string>

#include "common/proto/node_report.h"
#include "ctld/core/state/state.h"

namespace gantry::age {

// "" or what it knows that we do not. `heard_us`: this controller, since it started, may have told
// the node its epoch.
std::string newer_than_us(const core::State& state, const proto::NodeRegister& message,
                          bool heard_us);

// Whether this attempt is placed on that node, as far as we know.
bool is_placed(const core::State& state, const core::Node& node, const proto::AttemptKey& key);

}  // namespace gantry::age
