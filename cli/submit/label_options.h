// Setters of the options that describe a job's purpose, for rules and reports: --labels, --type.
#pragma once

#include "cli/submit/job_request.h"

namespace gantry::cli::job {

// "team=vision,project-code=p7"; given again, it adds.
Result<void> set_labels(JobRequest& r, std::string_view text);
// training, inference or interactive.
Result<void> set_work_type(JobRequest& r, std::string_view text);

}  // namespace gantry::cli::job
