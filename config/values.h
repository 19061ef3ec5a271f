// Reads single values as people write them in YAML: durations, names, yes and no. Errors quote the
// text and tell what is allowed.
#pragma once

#include <string>
#include <string_view>

#include "common/result.h"
#include "common/time/time.h"

namespace gantry::config {

// Reads "30s", "1m30s", "2h", "7d", or D-HH:MM:SS and HH:MM:SS; not negative.
Result<Duration> parse_length(std::string_view text);
std::string show_length(Duration d);  // "1m30s"; parse_length can read it

Result<bool> parse_bool(std::string_view text);

// True for a valid name: up to 64 letters, digits, '-', '_' and '.', not beginning with '-' or '.'.
bool is_word(std::string_view text);

}  // namespace gantry::config
