// The local time of whoever runs a command.
#pragma once

#include <string>

namespace gantry::cli {

// Its rule for TimeZone: of the variable TZ, else of this machine; "UTC0" if there is none.
std::string local_zone_rule();

}  // namespace gantry::cli
