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
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "address", s.address);
    v(2, "port", s.port);
    v(3, "inside", s.inside);
    v(4, "password", s.password);
  }
};

}  // namespace gantry::runtime
