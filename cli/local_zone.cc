#include "cli/local_zone.h"

#include <cstdlib>

#include "config/tenancy/read_prices.h"

namespace gantry::cli {

std::string local_zone_rule() {
  const char* set = std::getenv("TZ");
  const auto rule = tenancy::zone_rule(set == nullptr ? "/etc/localtime" : set);
  return rule.value_or("UTC0");
}

}  // namespace gantry::cli
