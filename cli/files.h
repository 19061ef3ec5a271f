// Small files: configuration, keys, pid files.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"

namespace gantry::cli {

inline constexpr std::size_t kSmallFile = 64u << 10;
inline constexpr std::size_t kLargeFile = 64u << 20;  // of another system's, with all its users

// nullopt when it does not exist. Files above `most` bytes are refused.
Result<std::optional<std::string>> read_small_file(const std::string& path,
                                                   std::size_t most = kSmallFile);

// What commands write for who called them: documents, records of jobs, invoices.
inline constexpr mode_t kPrivateFile = 0600, kPrivateFolder = 0700;

// Whole or not at all: written beside, synced and renamed. The mode is what it gets, whatever the
// umask.
Result<void> write_file(const std::string& path, std::string_view text, mode_t mode);

// Makes the directory and those above it; one that exists is fine.
Result<void> make_directories(const std::string& path, mode_t mode);

}  // namespace gantry::cli
