// Waits in tests for what no event tells of.
#pragma once

#include <unistd.h>

namespace gantry {

// Asks every 10 ms whether the fact holds. Returns false if it does not within 30 s.
template <class Fact>
bool until(const Fact& fact) {
  for (int i = 0; i < 3000; ++i) {
    if (fact()) return true;
    ::usleep(10'000);  // tidy-allow(sleep): who asks gets no event
  }
  return false;
}

}  // namespace gantry
