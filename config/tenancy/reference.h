// Makes docs/tenancy-kinds.md: every key of every kind, from the tables in kinds.cc.
#pragma once

#include <string>

namespace gantry::tenancy {

std::string kinds_page();

}  // namespace gantry::tenancy
