// A connection to the commands of one process of HAProxy (its stats socket). It stays open: a
// process that was replaced, and still answers what it had, can be reached only by it.
#pragma once

#include <string>

#include "common/fd.h"
#include "common/result.h"

namespace gantry::gate {

class Admin {
 public:
  // unavailable: nobody is there.
  static Result<Admin> connect(const std::string& path);

  // Sends one command and returns what it says. It blocks for kAnswerMs at most; after an error the
  // connection is of no use any more.
  Result<std::string> ask(const std::string& command);

  // The process at the other end; 0 = it is not known.
  Result<int> process();

 private:
  Fd fd_;
};

inline constexpr int kAnswerMs = 2'000;

}  // namespace gantry::gate
