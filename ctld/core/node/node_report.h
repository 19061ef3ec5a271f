// What a node's reports about one attempt change, for its registration too.
#pragma once

#include "common/types.h"
#include "ctld/core/request.h"

namespace gantry::core {

struct Context;

void handle(Context&, NodeId, proto::LaunchReady&&);
void handle(Context&, NodeId, proto::Started&&);
void handle(Context&, NodeId, proto::Frozen&&);
// Ends the attempts that the node did not list when it registered, once that list is known to be
// complete.
void judge_missing(Context&, NodeId);

}  // namespace gantry::core
