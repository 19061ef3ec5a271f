#include "cli/step/raw_terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace gantry::cli {

RawTerminal::RawTerminal() {
  termios now{};
  if (::tcgetattr(STDIN_FILENO, &now) != 0) return;
  before_ = now;
  ::cfmakeraw(&now);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &now);
}

RawTerminal::~RawTerminal() {
  if (before_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &*before_);
}

std::optional<proto::TerminalSize> terminal_size() {
  winsize window{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0) return std::nullopt;
  return proto::TerminalSize{window.ws_row, window.ws_col};
}

}  // namespace gantry::cli
