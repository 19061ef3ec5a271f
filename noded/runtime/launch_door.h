// The door of a replica, in the order to its shim: where the node takes connections for it.
#pragma once

#include <cstdint>
#include <string>

#include "common/fields.h"

namespace gantry::runtime {

struct LaunchDoor {
  std::string address;  // of this node, numeric
  std::uint16_t port = 0;
  std::uint16_t inside = 0;  // on 127.0.0.1 of the job
  std::string password;
  GANTRY_FIELDS(FIELD(1, address), FIELD(2, port), FIELD(3, inside), FIELD(4, password))
};

}  // namespace gantry::runtime
