// Notes of a job; see proto::NoteJobs.
#pragma once

#include <optional>
#include <string>

#include "common/fields.h"
#include "common/job/job_state.h"

namespace gantry::core {

// What users noted of a job for its history; unset or "" = nothing.
struct JobNotes {
  std::optional<ExitStatus> derived_exit;  // replaces the worst exit status of its steps
  std::string admin_comment, system_comment;
  GANTRY_FIELDS(FIELD(1, derived_exit), FIELD(2, admin_comment), FIELD(3, system_comment))
};

}  // namespace gantry::core
