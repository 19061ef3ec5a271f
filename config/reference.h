// docs/config.md, made from the option tables: `gantry config reference` prints it, a test keeps
// the page in docs/ equal to it.
#pragma once

#include <string>

namespace gantry::config {

std::string reference_page();

}  // namespace gantry::config
