#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace gantry::cli {

bool is_terminal(std::FILE* file) {
  return ::isatty(::fileno(file)) == 1;
}

int terminal_width(std::FILE* file) {
  winsize size{};
  if (::ioctl(::fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col > 1) return size.ws_col;
  return 80;
}

int terminal_height(std::FILE* file) {
  winsize size{};
  if (::ioctl(::fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_row > 1) return size.ws_row;
  return 24;
}

bool wants_colour(std::FILE* file) {
  const char* off = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return is_terminal(file) && (off == nullptr || *off == '\0') && term != nullptr &&
         std::string_view(term) != "dumb";
}

std::string_view colour_on(Colour colour) {
  switch (colour) {
    case Colour::none: return "";
    case Colour::green: return "\033[32m";
    case Colour::yellow: return "\033[33m";
    case Colour::red: return "\033[31m";
    case Colour::cyan: return "\033[36m";
    case Colour::grey: return "\033[90m";
  }
  return "";
}

}  // namespace gantry::cli
