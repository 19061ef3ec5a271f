// A submit as such, whoever asks for it: a client by a message, or the controller for a service.
#pragma once

#include "common/proto/job_submit.h"
#include "ctld/core/context.h"
#include "ctld/core/request.h"

namespace gantry::core {

// Checks the submit as this identity's and makes a job of it. The answer has the job's id and
// warnings. `test_only` is not for this.
Result<proto::SubmitReply> submit_job(Context& ctx, const Identity& who, proto::SubmitJob&& submit);

}  // namespace gantry::core
