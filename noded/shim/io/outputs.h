// Standard input, output and error of a batch job. They are opened as the job's owner, before the
// container exists, so that a job with a missing directory is refused with a message that names it.
// Only regular files, named pipes and /dev/null are allowed (as_user.h).
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
// Opens a file for the output of a step's task. A new file gets the permissions that the job's
// umask allows.
Result<Fd> open_output(const LaunchRequest& request, const std::string& path, OpenMode mode);

// Opens a file that a step's task reads.
Result<Fd> open_input(const LaunchRequest& request, const std::string& path);

// Writes, as the user, what Gantry reports in the job's output: a notice, or why the job ended.
void say_in_output(const LaunchRequest& request, const StandardFiles& files, std::string_view text);

}  // namespace gantry::runtime
