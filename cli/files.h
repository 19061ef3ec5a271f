// Small files: configuration, keys, pid files.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"

namespace gantry::cli {

// nullopt when it does not exist. Files above 64 KiB are refused.
Result<std::optional<std::string>> read_small_file(const std::string& path);

// Whole or not at all: written beside, synced and renamed.
Result<void> write_file(const std::string& path, std::string_view text, mode_t mode);

// Makes the directory and those above it; one that exists is fine.
Result<void> make_directories(const std::string& path, mode_t mode);

}  // namespace gantry::cli
