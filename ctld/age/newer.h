// Finds out from a node's registration whether a controller with a newer store than ours has talked
// to the node. No order leaves before its events are committed. So a node can never know more than
// the store, unless the store was replaced by an older copy.
#pragma once

#include <string>

#include "common/proto/attempt.h"
#include "common/proto/node_report.h"
#include "ctld/core/state/state.h"

namespace gantry::age {

// What the node knows and this controller does not; "" if nothing. `heard_us`: this controller,
// since it started, may have told the node its epoch.
std::string newer_than_us(const core::State& state, const proto::NodeRegister& message,
                          bool heard_us);

// Whether this attempt is placed on that node according to the store.
bool is_placed(const core::State& state, const core::Node& node, const proto::AttemptKey& key);

}  // namespace gantry::age
