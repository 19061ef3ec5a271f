// Patterns for one value, in the form that Kyverno has for its rules: alternatives with "|", all of
// several with "&", "!" for not, ">", ">=", "<", "<=", a range "LOW-HIGH", and "*" and "?" in
// texts. "?*" is any text that is not empty, and "" is an empty one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.h"

namespace gantry::policy {

// How values of a field are compared and written.
enum class Measure : std::uint8_t {
  text,      // compared as text
  number,    // whole numbers
  memory,    // bytes; patterns have units: "64G"
  duration,  // seconds; patterns as in --time: "4:00:00", "2-00", "4h"
  flag,      // "true" or "false"
};

inline constexpr std::size_t kMostPatternBytes = 1024;

// Whether the pattern can be read for such values. The error names the part that cannot.
Result<void> check_pattern(Measure measure, std::string_view pattern);

// Whether the value matches. Numbers, memory and durations are decimal numbers; an empty value of
// these (nothing is known, or unlimited) matches "" only. A part that cannot be read does not
// match.
bool matches(Measure measure, std::string_view pattern, std::string_view value);

// "*" and "?" as in file names; takes time in proportion to the product of both lengths at most.
bool glob(std::string_view pattern, std::string_view text);

}  // namespace gantry::policy
