// Runs one program to its end: what it is to read, what it wrote, and a time after which it is
// killed. The call waits, so it belongs onto a thread of its own.
#pragma once

#include <string>
#include <vector>

#include "common/time/time.h"

namespace gantry::network {

struct ProgramEnd {
  int status = 127;  // as a shell has it: 128 and the signal; 127: it could not be started
  bool in_time = true;
  std::string output, errors;  // 1 MiB of each at most
};

ProgramEnd run_program(const std::string& path, const std::vector<std::string>& env,
                       const std::string& input, Duration patience);

}  // namespace gantry::network
