// Sending a job to the controller, for gbatch and sbatch.
#pragma once

#include <optional>
#include <string>

#include "cli/session.h"

namespace gantry::cli {

// On a new session, which is left in `session`; again on another one when the first may have been
// lost: the request id makes that safe.
Result<proto::SubmitReply> submit_job(const std::string& program, const proto::SubmitJob& message,
                                      std::optional<Session>& session);
Result<proto::SubmitReply> submit_job(const std::string& program,
                                      const proto::SubmitTogether& message,
                                      std::optional<Session>& session);

}  // namespace gantry::cli
