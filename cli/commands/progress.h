// Shows the progress of something that starts or stops.
#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <string>

#include "cli/table.h"

namespace gantry::cli {

// Shows progress: on a terminal as one line that changes, elsewhere as a new line at each change.
class Progress {
 public:
  void say(const std::string& text) {
    if (text == last_) return;
    if (live_)
      fmt::print(stderr, "\r\033[K{}", text);
    else
      fmt::print(stderr, "{}\n", text);
    std::fflush(stderr);
    last_ = text;
  }
  void end() {
    if (live_ && !last_.empty()) fmt::print(stderr, "\r\033[K");
    last_.clear();
  }

 private:
  bool live_ = is_terminal(stderr);
  std::string last_;
};

}  // namespace gantry::cli
