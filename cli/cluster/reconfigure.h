// Makes the controller and its nodes read their configuration again.
#pragma once

#include <string_view>

#include "common/result.h"

namespace gantry::cli {

// Asks the controller to reconfigure and waits until it answers with the new configuration. The
// error says what is wrong with the file, or why the controller could not start with it; the
// controller then continues with the old configuration.
Result<void> reconfigure(std::string_view program);

}  // namespace gantry::cli
