// The end of a list of an array's tasks in the history that was too long to be kept whole.
#pragma once

#include <string_view>

namespace gantry::core {

// Only the first tasks are listed; the others have greater indexes. As in Slurm's lists.
inline constexpr std::string_view kMoreTasks = ",...";

}  // namespace gantry::core
