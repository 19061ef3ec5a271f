// A submit itself, whoever sends it: a client with a message, or the controller for a service.
#pragma once

#include "common/proto/job_submit.h"
#include "ctld/core/context.h"
#include "ctld/core/request.h"

namespace gantry::core {

// Checks the submit as a request of this identity and makes its job. Returns the job's id and
// warnings. Not for `test_only`.
Result<proto::SubmitReply> submit_job(Context& ctx, const Identity& who, proto::SubmitJob&& submit);

}  // namespace gantry::core
