// Assertions, which are on in every build. A failed assertion is a bug in Gantry; anything wrong in
// the world outside is an Error instead. A failed assertion prints the expression, the place and
// the message to stderr and aborts.
#pragma once

#include <string_view>

namespace gantry {
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line,
                                   std::string_view message);
}

#define GANTRY_ASSERT(expression, message) \
  (static_cast<bool>(expression)           \
       ? static_cast<void>(0)              \
       : ::gantry::assertion_failed(#expression, __FILE__, __LINE__, (message)))
