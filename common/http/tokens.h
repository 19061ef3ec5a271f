// Decides which tenants a token may read over HTTP. A file has one line "TENANT TOKEN" for each
// token; "*" stands for all tenants. The file is read again whenever it has changed. It must belong
// to this user or root, and nobody else may read it.
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
  std::optional<std::string> tenant;  // not set: all tenants
};

class Tokens {
 public:
  explicit Tokens(std::string path) : path_(std::move(path)) {}

  // The tenants that a token may read; nullopt if the file does not have the token. It is an error
  // if the file's owner, mode or content is wrong.
  Result<std::optional<Scope>> scope_of(std::string_view token);

 private:
  struct Line {
    std::string tenant, token;
  };
  Result<void> read();

  std::string path_;
  std::int64_t changed_ = -1;  // modification time of the file when it was read, nanoseconds
  std::vector<Line> lines_;
};

}  // namespace gantry::http
