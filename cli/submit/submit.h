// Sends a job to the controller, for gbatch and sbatch.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/session.h"
#include "common/job/job_spec.h"

namespace gantry::cli {

// Submits on a new session, which is left in `session`. If the answer may have been lost, the
// submit is repeated on another session; the request id makes that safe.
Result<proto::SubmitReply> submit_job(const std::string& program, const proto::SubmitJob& message,
                                      std::optional<Session>& session);
Result<proto::SubmitReply> submit_job(const std::string& program,
                                      const proto::SubmitTogether& message,
                                      std::optional<Session>& session);

// gbatch --wait: waits until a job has ended.

// Waits for the job and returns its exit code. On a terminal one line shows state, reason and time;
// elsewhere each change of state is a line on standard error. If the controller is down, this waits
// for it.
Result<int> wait_for_job(const std::string& program, Session session, JobId job, bool quiet);

// Likely mistakes at a submit that are allowed: reported at once, because the job would fail or
// behave differently only hours later.

// Lines of the script that look like directives but are not: "# SBATCH --mem=1G", "#SBATCH--mem",
// and directives after the first command. `name` is printed before a line's number. Here-documents
// are skipped, because they may contain other scripts.
std::vector<std::string> script_warnings(std::string_view script, std::string_view name);

// Folders of --chdir, --output and --error that this machine does not have. A node may have them.
std::vector<std::string> folder_warnings(const JobSpec& spec);

// "gbatch: warning: ..." for each, on standard error.
void print_warnings(std::string_view program, const std::vector<std::string>& warnings);

}  // namespace gantry::cli
