// Whether a person watches the output, and how large the window is.
#pragma once

#include <cstdio>
#include <string_view>

namespace gantry::cli {

bool is_terminal(std::FILE* file);
int terminal_width(std::FILE* file);   // columns; 80 if unknown
int terminal_height(std::FILE* file);  // lines; 24 if unknown
bool wants_colour(std::FILE* file);    // true for a terminal, unless NO_COLOR or TERM=dumb is set

enum class Colour : unsigned char { none, green, yellow, red, cyan, grey };
std::string_view colour_on(Colour colour);  // "" for none
inline constexpr std::string_view kColourOff = "\033[0m";

}  // namespace gantry::cli
