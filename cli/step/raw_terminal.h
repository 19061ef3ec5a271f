// Connects the user's terminal to the terminal of a task. While this object lives, keys are passed
// on unchanged, even Ctrl-C and Ctrl-Z, and nothing is echoed here.
#pragma once

#include <termios.h>

#include <optional>

#include "common/proto/steps.h"

namespace gantry::cli {

class RawTerminal {
 public:
  RawTerminal();  // works on standard input; does nothing if it is no terminal
  ~RawTerminal();
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  std::optional<termios> before_;
};

// The size of the terminal on standard output; nullopt, with errno set, if it is no terminal.
std::optional<proto::TerminalSize> terminal_size();

}  // namespace gantry::cli
