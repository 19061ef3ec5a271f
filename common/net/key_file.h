// Files with secrets. They have mode 0600, are written completely or not at all, and are refused if
// others may read them. The text consists of lines "name value"; empty lines and lines with # are
// comments.
#pragma once

#include <map>
#include <string>

#include "common/result.h"

namespace gantry::net {

inline constexpr std::size_t kMaxKeyFileBytes = 4096;

// Never overwrites a file: if PATH exists, the error is already_exists.
Result<void> write_private_file(const std::string& path, const std::string& text);
Result<std::map<std::string, std::string>> read_private_file(const std::string& path);

}  // namespace gantry::net
