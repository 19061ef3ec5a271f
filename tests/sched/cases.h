// The number of random cases on which a property is tested.
#pragma once

#include <cstdlib>
#include <string_view>

namespace gantry::sched {

inline bool long_tests() {
  const char* text = std::getenv("GANTRY_LONG");
  return text != nullptr && std::string_view(text) == "1";
}

// Returns `few`, or 10,000 with GANTRY_LONG=1 (./dev test --long).
inline int cases(int few) {
  return long_tests() ? 10'000 : few;
}

}  // namespace gantry::sched
