// The environment of a job's processes, made from the job's own variables and those of an image.
#pragma once

#include <string>
#include <vector>

#include "common/result.h"
#include "noded/image/manifest.h"
#include "noded/runtime/launch.h"

namespace gantry::runtime {

// A variable of the image wins over one that the user's shell happened to have (PATH, LANG,
// LD_LIBRARY_PATH ...), but never over one that describes the job or the user. PATH, HOME, USER,
// LOGNAME, SHELL and TMPDIR are always set. invalid_argument: the environment or the script's
// arguments hold bytes that config.json cannot (no UTF-8), or more than the kernel gives a program.
Result<std::vector<std::string>> container_environment(const LaunchRequest& request,
                                                       const ImageConfig& image);

}  // namespace gantry::runtime
