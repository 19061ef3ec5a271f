// A replica as a job: the submit that a user would send to run the service's command by hand.
#pragma once

#include "common/proto/job_submit.h"
#include "common/tenancy/tenancy_service.h"
#include "ctld/core/request.h"
#include "ctld/core/state/state.h"

namespace gantry::core {

// The submit of one more replica of this set. Network, sandbox and limits are decided as for any
// job of its owner.
proto::SubmitJob replica_job(const tenancy::Service& service, const ReplicaSet& set,
                             std::uint32_t shape, const State& state);

// The identity that submits it: the set's owner, with no more rights than a user.
Identity owner_of(const ReplicaSet& set);

}  // namespace gantry::core
