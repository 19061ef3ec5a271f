// Sends a job to the controller, for gbatch and sbatch.
#pragma once

#include <optional>
#include <string>

#include "cli/session.h"

namespace gantry::cli {

// Submits on a new session, which is left in `session`. If the answer may have been lost, the
// submit is repeated on another session; the request id makes that safe.
Result<proto::SubmitReply> submit_job(const std::string& program, const proto::SubmitJob& message,
                                      std::optional<Session>& session);
Result<proto::SubmitReply> submit_job(const std::string& program,
                                      const proto::SubmitTogether& message,
                                      std::optional<Session>& session);

}  // namespace gantry::cli
