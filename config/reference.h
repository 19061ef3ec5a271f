// Makes docs/config.md from the option tables. `gantry config reference` prints it, and a test
// checks that the page in docs/ is equal to it.
#pragma once

#include <string>

namespace gantry::config {

std::string reference_page();

}  // namespace gantry::config
