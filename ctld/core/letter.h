// A letter (e-mail) about a job, as it is handed to controller.mail_program.
#pragma once

#include <string>
#include <vector>

#include "common/types.h"

namespace gantry::core {

struct Letter {
  Uid uid{};                    // the job's owner; the letter is sent as this user
  std::vector<std::string> to;  // checked: has only harmless characters
  std::string subject;          // printable ASCII, in Slurm's words
  std::string body;             // UTF-8, several lines
};

}  // namespace gantry::core
