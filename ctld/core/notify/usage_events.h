// Usage events: each start and each end of an attempt of a job, with what it holds and what it
// cost, for other programs. They are made while the journal's events are applied and have the same
// numbers, so an event that is sent again after a restart has the same id.
#pragma once

#include <string>
#include <vector>

#include "ctld/core/event/event.h"
#include "ctld/core/state/mutable_state.h"
#include "ctld/core/usage_event.h"

namespace gantry::core {

// Applies the event, and adds the usage events that follow from it.
void apply_and_tell(MutableState& state, EventSeq seq, Instant at, EventRef event,
                    const std::string& cluster, std::vector<UsageEvent>& out);

}  // namespace gantry::core
