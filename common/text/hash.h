// A hash of text that is the same in every process, on every machine and in every release.
#pragma once

#include <cstdint>
#include <string_view>

namespace gantry {

// FNV-1a with 32 bits (https://datatracker.ietf.org/doc/html/draft-eastlake-fnv, section 5). Pass
// the hash of the previous text as `from` to continue it.
constexpr std::uint32_t fnv1a(std::string_view text, std::uint32_t from = 2'166'136'261U) {
  for (const char c : text) from = (from ^ static_cast<std::uint8_t>(c)) * 16'777'619U;
  return from;
}

}  // namespace gantry
