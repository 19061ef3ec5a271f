// The environment of a job's processes: the job's own, and what an image brings.
#pragma once

#include <string>
#include <vector>

#include "common/result.h"
#include "noded/image/manifest.h"
#include "noded/runtime/launch.h"

namespace gantry::runtime {

// A variable of the image wins over one that the user's shell happened to have (PATH, LANG,
// LD_LIBRARY_PATH ...), but never over what describes the job or the user. Always set: PATH, HOME,
// USER, LOGNAME, SHELL, TMPDIR. Fails on what config.json cannot hold (bytes that are no UTF-8).
Result<std::vector<std::string>> container_environment(const LaunchRequest& request,
                                                       const ImageConfig& image);

}  // namespace gantry::runtime
