// How a list of an array's tasks ends in the history where it was too long to be kept whole.
#pragma once

#include <string_view>

namespace gantry::core {

// Only the first tasks stand before it; the others have greater indexes. As in Slurm's lists.
inline constexpr std::string_view kMoreTasks = ",...";

}  // namespace gantry::core
