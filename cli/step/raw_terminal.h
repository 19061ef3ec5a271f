// Our terminal, handed over to a task's: until this ends, keys go on as they are, Ctrl-C and Ctrl-Z
// too, and nothing is echoed here.
#pragma once

#include <termios.h>

#include <optional>

#include "common/proto/steps.h"

namespace gantry::cli {

class RawTerminal {
 public:
  RawTerminal();  // standard input; nothing where that is no terminal
  ~RawTerminal();
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  std::optional<termios> before_;
};

// Of the terminal that standard output is; nullopt if it is none, with errno.
std::optional<proto::TerminalSize> terminal_size();

}  // namespace gantry::cli
