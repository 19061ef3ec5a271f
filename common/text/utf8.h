// Checks that a text is UTF-8 as Unicode defines it, without overlong forms and surrogates.
#pragma once

#include <cstddef>
#include <string_view>

namespace gantry {

// The number of bytes in the first sequence of `text`; 0 if it is not valid, 1 for an empty text.
std::size_t utf8_length(std::string_view text);
// The offset of the first byte that is no UTF-8; npos if there is none.
std::size_t find_no_utf8(std::string_view text);
inline bool is_utf8(std::string_view text) {
  return find_no_utf8(text) == std::string_view::npos;
}

}  // namespace gantry
