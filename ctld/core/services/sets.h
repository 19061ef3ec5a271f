// Which sets of replicas a service has: from its document, and from its earlier sets.
#pragma once

#include <optional>

#include "ctld/core/context.h"
#include "ctld/core/event/events_service.h"
#include "ctld/core/request.h"

namespace gantry::core {

// Whether replicas of the two are interchangeable: all but the weight is equal.
bool runs_the_same(const tenancy::ServiceVersion& a, const tenancy::ServiceVersion& b);

// The sets that a service has once its document is this one: new sets for versions that are new or
// run something else now, none for versions that were removed. `who` owns the new ones. Unset if
// nothing changes.
std::optional<event::ServiceSet> sets_for(const tenancy::Service& doc, const ServiceState* now,
                                          const Identity& who, Instant at);

// The set that a rollout replaces by this one; null if none is under way for the version.
const ReplicaSet* set_before(const ServiceState& service, const ReplicaSet& fresh);
// The newest set of this version.
const ReplicaSet* newest_set(const ServiceState& service, const std::string& version);

// Without the older (or, with `newer`, without the newer) set of each version that has two.
event::ServiceSet without_sets(const std::string& name, const ServiceState& service,
                               const std::string& version, bool newer);

}  // namespace gantry::core
