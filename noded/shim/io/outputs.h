// Standard input, output and error of a batch job: opened as the job's owner, before the container
// exists, so that a missing directory refuses the job with a word that says which. Files, named
// pipes and /dev/null only (as_user.h).
#pragma once

#include <string_view>

#include "common/job/output_pattern.h"
#include "common/result.h"
#include "noded/machine/files.h"
#include "noded/runtime/launch.h"

namespace gantry::runtime {

struct StandardFiles {
  Fd in, out, err;  // err empty = the same as out
  [[nodiscard]] int err_fd() const { return err ? err.get() : out.get(); }
};

PatternValues pattern_values(const NodeSetup& setup, const LaunchRequest& request);

// Relative names are taken from the job's working directory.
std::string absolute_path(const std::string& work_dir, const std::string& path);

Result<StandardFiles> open_standard_files(const NodeSetup& setup, const LaunchRequest& request);
Result<Fd> open_output(const LaunchRequest& request, const std::string& path);

// What we have to say to the user there: a notice, or why the job ended. Written as the user.
void say_in_output(const LaunchRequest& request, const StandardFiles& files, std::string_view text);

}  // namespace gantry::runtime
