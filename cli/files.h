// Reading and writing of small files: configuration, keys, pid files.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"

namespace gantry::cli {

inline constexpr std::size_t kSmallFile = 64u << 10;
// Limit for a file of another system that lists all its users.
inline constexpr std::size_t kLargeFile = 64u << 20;

// Returns nullopt when the file does not exist. Files larger than `most` bytes are refused.
Result<std::optional<std::string>> read_small_file(const std::string& path,
                                                   std::size_t most = kSmallFile);

// Modes of the documents, job records and invoices that a command writes for the user who called
// it.
inline constexpr mode_t kPrivateFile = 0600, kPrivateFolder = 0700;

// Writes the file completely or not at all: the text is written to a file beside it, synced and
// renamed. The file gets exactly this mode, whatever the umask is.
Result<void> write_file(const std::string& path, std::string_view text, mode_t mode);

// Makes the directory and its parents. It is no error if the directory exists.
Result<void> make_directories(const std::string& path, mode_t mode);

}  // namespace gantry::cli
