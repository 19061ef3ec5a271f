// Whether a person watches, and how wide the window is.
#pragma once

#include <cstdio>
#include <string_view>

namespace gantry::cli {

bool is_terminal(std::FILE* file);
int terminal_width(std::FILE* file);   // columns; 80 when it is not known
int terminal_height(std::FILE* file);  // lines; 24 when it is not known
bool wants_colour(std::FILE* file);    // a terminal, and neither NO_COLOR nor TERM=dumb

enum class Colour : unsigned char { none, green, yellow, red, cyan, grey };
std::string_view colour_on(Colour colour);  // "" for none
inline constexpr std::string_view kColourOff = "\033[0m";

}  // namespace gantry::cli
