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
// USER, LOGNAME, SHELL, TMPDIR. invalid_argument where it or the script's arguments hold what
// config.json cannot (bytes that are no UTF-8), or more than the kernel gives a program.
Result<std::vector<std::string>> container_environment(const LaunchRequest& request,
                                                       const ImageConfig& image);

}  // namespace gantry::runtime
