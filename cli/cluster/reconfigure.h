// Having the controller and its nodes read their configuration again.
#pragma once

#include <string_view>

#include "common/result.h"

namespace gantry::cli {

// Until the controller answers with the new one. The error: what is wrong with the file, as it was
// read or as the controller could not start with it; the configuration is then as it was.
Result<void> reconfigure(std::string_view program);

}  // namespace gantry::cli
