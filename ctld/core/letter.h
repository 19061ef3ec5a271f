// A letter about a job, as it is handed to controller.mail_program.
#pragma once

#include <string>
#include <vector>

#include "common/types.h"

namespace gantry::core {

struct Letter {
  Uid uid{};                    // the job's owner; the letter is sent as this user
  std::vector<std::string> to;  // checked: harmless characters only
  std::string subject;          // printable ASCII, as Slurm words it
  std::string body;             // UTF-8, lines
};

}  // namespace gantry::core
