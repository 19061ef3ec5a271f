// Parting a text: at a character, at commas, or into words as a shell would.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace gantry {

// All parts between the separators, empty ones too; of an empty text the one empty part.
std::vector<std::string> split(std::string_view text, char separator);

std::vector<std::string> split_list(std::string_view text);  // at commas, empty parts left out

// Whether a backslash outside of single quotes takes the next character as it is.
enum class Backslash : std::uint8_t { is_text, escapes };

// Words parted by blanks and tabs, with "..." and '...' as quotes; a word that begins with # begins
// a comment. The error is the quote that is not closed.
tl::expected<std::vector<std::string>, char> split_words(std::string_view line,
                                                         Backslash backslash);

}  // namespace gantry
