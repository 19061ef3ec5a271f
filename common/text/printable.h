// Texts that may be shown on a terminal, in a table or in JSON. Names, comments and paths come from
// users, and a text of one user must not move another user's cursor or damage a document.
//
// Not printable are: bytes that are no UTF-8; control characters (C0, DELETE and C1, because 0x9b
// begins a terminal command as ESC [ does); separators of lines and paragraphs; and marks that
// change the direction of writing, with which one text can look like another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.h"

namespace gantry {

enum class Lines : std::uint8_t {
  one,   // line feeds and tabs are not printable
  many,  // line feeds and tabs are printable
};

// The offset of the first character that is not printable; npos if all are.
std::size_t find_unprintable(std::string_view text, Lines lines = Lines::one);
inline bool is_printable(std::string_view text, Lines lines = Lines::one) {
  return find_unprintable(text, lines) == std::string_view::npos;
}

// The same check with an error in words: "the comment must be UTF-8: its byte 3 is not".
Result<void> check_printable(std::string_view what, std::string_view text,
                             Lines lines = Lines::one);

// The text with '?' for each character, and U+FFFD for each byte, that is not printable.
std::string printable(std::string_view text, Lines lines = Lines::one);

// Appends a JSON string with its quotes. Only bytes that are no UTF-8 are lost (they become
// U+FFFD); other characters that are not printable are written as \uXXXX.
void append_json_string(std::string& out, std::string_view text);

}  // namespace gantry
