// What is text: UTF-8 as Unicode has it, without overlong forms and surrogates.
#pragma once

#include <cstddef>
#include <string_view>

namespace gantry {

// Bytes of the sequence at the start of `text`, 0 if there is none; 1 for an empty text.
std::size_t utf8_length(std::string_view text);
// Offset of the first byte that is no UTF-8; npos when all of it is.
std::size_t find_no_utf8(std::string_view text);
inline bool is_utf8(std::string_view text) {
  return find_no_utf8(text) == std::string_view::npos;
}

}  // namespace gantry
