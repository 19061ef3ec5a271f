// Who may ask over HTTP: a file with a line "TENANT TOKEN" for each, "*" for all tenants. Read
// again whenever it has changed. It must belong to this user or root, and be nobody else's to read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace gantry::http {

inline constexpr std::size_t kLeastToken = 16;  // characters

struct Scope {
  std::optional<std::string> tenant;  // unset: all of them
};

class Tokens {
 public:
  explicit Tokens(std::string path) : path_(std::move(path)) {}

  // Whom the token speaks for; nothing: nobody's. An error: the file is not as it must be.
  Result<std::optional<Scope>> scope_of(std::string_view token);

 private:
  struct Line {
    std::string tenant, token;
  };
  Result<void> read();

  std::string path_;
  std::int64_t changed_ = -1;  // time of change of what was read, nanoseconds
  std::vector<Line> lines_;
};

}  // namespace gantry::http
