// Result<T>: a value, or one Error: a sentence about what is wrong, where, and what is allowed.
// Exceptions of libraries are caught in the wrapper that includes the library.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace gantry {

enum class ErrorCode : std::uint16_t {
#define X(name, number, exit_status, retry, summary) name = number,
#include "common/errors.def"
#undef X
};

struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;  // one sentence, no trailing newline
};

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

// TRY(call): if `call`, a Result<T> whose value is not needed, is an error, returns it from the
// surrounding function, which must return a Result as well.
#define TRY(...)                                                           \
  do {                                                                     \
    if (auto&& tried = (__VA_ARGS__); !tried)                              \
      return tl::unexpected(std::forward<decltype(tried)>(tried).error()); \
  } while (false)

// ASSIGN(name, call): declares `name` as the Result of `call`; if it is an error, returns it from
// the surrounding function. After this line *name is the value.
#define ASSIGN(name, ...)    \
  auto name = (__VA_ARGS__); \
  if (!name) return tl::unexpected(std::move(name).error())

// "invalid_argument"; "unknown" for numbers of a newer version
std::string_view name_of(ErrorCode code);
int exit_status_of(ErrorCode code);  // exit status of a command
bool may_retry(ErrorCode code);

}  // namespace gantry
