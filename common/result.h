// Result<T>: a value, or one Error that says in a sentence what is wrong, where, and what is
// allowed. Exceptions of libraries are caught in the wrapper that includes the library.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

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

// "invalid_argument"; "unknown" for numbers of a newer version
std::string_view name_of(ErrorCode code);
int exit_status_of(ErrorCode code);  // exit status of a command
bool may_retry(ErrorCode code);

}  // namespace gantry
