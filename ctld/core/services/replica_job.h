// A replica as the job that it is: what a user would submit who wrote the service's document as a
// script.
#pragma once

#include "common/proto/job_submit.h"
#include "common/tenancy/tenancy_service.h"
#include "ctld/core/request.h"
#include "ctld/core/state/state.h"

namespace gantry::core {

// The submit of one more replica of this set. Which network, sandbox and limits it gets is decided
// as for any job of its owner.
proto::SubmitJob replica_job(const tenancy::Service& service, const ReplicaSet& set,
                             std::uint32_t shape, const State& state);

// Who submits it: the set's owner, with no other rights than a user's.
Identity owner_of(const ReplicaSet& set);

}  // namespace gantry::core
