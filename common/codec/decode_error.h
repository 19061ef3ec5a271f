// Collects the one error of a decode: what was wrong, and then, as the readers return, the path to
// it. It costs nothing as long as no error happens.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "common/result.h"

namespace gantry::codec {

class DecodeError {
 public:
  // Records an error; later errors are ignored. It always returns false, so that a reader can
  // `return error.fail(...)`.
  bool fail(std::string what) {
    if (what_.empty()) what_ = std::move(what);
    return false;
  }
  // Adds the field or index in which the failure happened to the path. It always returns false.
  bool in_field(std::string_view name) {
    std::string path(name);
    if (!path_.empty() && path_.front() != '[') path += '.';
    path_.insert(0, path);
    return false;
  }
  bool in_item(std::size_t index) {
    std::string path = "[" + std::to_string(index) + "]";
    if (!path_.empty() && path_.front() != '[') path += '.';
    path_.insert(0, path);
    return false;
  }
  [[nodiscard]] Error to_error() const {
    std::string text = path_.empty() ? what_ : "field " + path_ + ": " + what_;
    return Error{ErrorCode::malformed, std::move(text)};
  }

 private:
  std::string what_;
  std::string path_;
};

}  // namespace gantry::codec
