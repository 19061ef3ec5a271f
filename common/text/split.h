// Splits a text: at a character, at commas, or into words as a shell does.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace gantry {

// Returns all parts between the separators, including empty ones. An empty text has one empty part.
std::vector<std::string> split(std::string_view text, char separator);

// Splits at commas, leaves empty parts out.
std::vector<std::string> split_list(std::string_view text);

// Whether a backslash outside of single quotes makes the next character a plain one.
enum class Backslash : std::uint8_t { is_text, escapes };

// Splits at blanks and tabs; "..." and '...' are quotes, and a word that begins with # begins a
// comment. The error is the quote that is not closed.
tl::expected<std::vector<std::string>, char> split_words(std::string_view line,
                                                         Backslash backslash);

}  // namespace gantry
