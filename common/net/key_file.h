// Files that hold secrets: mode 0600, written whole or not at all, refused when others may read
// them. The text is lines "name value"; empty lines and lines with # are comments.
#pragma once

#include <map>
#include <string>

#include "common/result.h"

namespace gantry::net {

inline constexpr std::size_t kMaxKeyFileBytes = 4096;

// already_exists if PATH is there; never overwrites.
Result<void> write_private_file(const std::string& path, const std::string& text);
Result<std::map<std::string, std::string>> read_private_file(const std::string& path);

}  // namespace gantry::net
