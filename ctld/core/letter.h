// A letter about a job, as it is handed to controller.mail_program.
#pragma once

#include <string>
#include <vector>

#include "common/types.h"

namespace gantry::core {

struct Letter {
  Uid uid{};                    // of the job's owner, as whom it is sent
  std::vector<std::string> to;  // checked: none but harmless characters
  std::string subject;          // printable ASCII, as Slurm words it
  std::string body;             // UTF-8, lines
};

}  // namespace gantry::core
