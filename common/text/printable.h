// Text that may be shown: on a terminal, in a table, in JSON. Names, comments and paths come from
// users, and what one user wrote must not move another one's cursor or spoil a document.
//
// Not printable are bytes that are no UTF-8, control characters (C0, DELETE and C1: 0x9b begins a
// terminal's command as ESC [ does), separators of lines and paragraphs, and the marks that turn
// the direction of writing, with which a text looks like another one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.h"

namespace gantry {

enum class Lines : std::uint8_t {
  one,   // line feeds and tabs are not printable either
  many,  // they are
};

// Offset of the first character that is not printable; npos: all are.
std::size_t find_unprintable(std::string_view text, Lines lines = Lines::one);
inline bool is_printable(std::string_view text, Lines lines = Lines::one) {
  return find_unprintable(text, lines) == std::string_view::npos;
}

// The same as a sentence: "the comment must be UTF-8: its byte 3 is not".
Result<void> check_printable(std::string_view what, std::string_view text,
                             Lines lines = Lines::one);

// With '?' for each character, and U+FFFD for each byte, that is not printable.
std::string printable(std::string_view text, Lines lines = Lines::one);

// As a JSON string with its quotes. Nothing is lost but bytes that are no UTF-8, which become
// U+FFFD: the rest of what is not printable is written as \uXXXX.
void append_json_string(std::string& out, std::string_view text);

}  // namespace gantry
