// The one place where a test program sleeps between two looks at a fact.
#include "tests/eventually.h"

#include <thread>

namespace gantry {

bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds patience,
                std::chrono::milliseconds pause) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    // tidy-allow(sleep): what is waited for sends no event
    std::this_thread::sleep_for(pause);
  }
  return true;
}

}  // namespace gantry
