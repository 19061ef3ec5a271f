// The local time of the user of a command.
#pragma once

#include <string>

namespace gantry::cli {

// The text for TimeZone: from the variable TZ, else from this machine; "UTC0" if there is none.
std::string local_zone_rule();

}  // namespace gantry::cli
