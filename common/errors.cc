// The tables of ErrorCode, all made from errors.def, and the function that ends the program after a
// failed assertion.
#include "common/assert.h"
#include "common/result.h"

#include <cstdio>
#include <cstdlib>

namespace gantry {

std::string_view name_of(ErrorCode code) {
  switch (code) {
#define X(name, number, exit_status, retry, summary) \
  case ErrorCode::name:                              \
    return #name;
#include "common/errors.def"
#undef X
  }
  return "unknown";
}

int exit_status_of(ErrorCode code) {
  switch (code) {
#define X(name, number, exit_status, retry, summary) \
  case ErrorCode::name:                              \
    return exit_status;
#include "common/errors.def"
#undef X
  }
  return 1;
}

bool may_retry(ErrorCode code) {
  switch (code) {
#define X(name, number, exit_status, retry, summary) \
  case ErrorCode::name:                              \
    return retry;
#include "common/errors.def"
#undef X
  }
  return false;
}

void assertion_failed(const char* expression, const char* file, int line,
                      std::string_view message) {
  std::fprintf(stderr, "%s:%d: assertion failed: %s: %.*s\n", file, line, expression,
               static_cast<int>(message.size()), message.data());
  std::fflush(stderr);
  std::abort();
}

}  // namespace gantry
