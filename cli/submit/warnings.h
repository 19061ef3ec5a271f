// What is allowed at a submit and is most likely a mistake: said at once, because the job would
// only fail or behave otherwise hours later.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/job/job_spec.h"

namespace gantry::cli {

// Lines of the script that look like directives and are none: "# SBATCH --mem=1G", "#SBATCH--mem",
// and directives after the first command. `name` stands in front of a line's number. What the
// script writes as a here-document is another script's.
std::vector<std::string> script_warnings(std::string_view script, std::string_view name);

// Folders of --chdir, --output and --error that this machine does not have. A node may have them.
std::vector<std::string> folder_warnings(const JobSpec& spec);

// "gbatch: warning: ..." for each, on standard error.
void print_warnings(std::string_view program, const std::vector<std::string>& warnings);

}  // namespace gantry::cli
