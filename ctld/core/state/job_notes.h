// Notes of a job; see proto::NoteJobs.
#pragma once

#include <optional>
#include <string>

#include "common/job/job_state.h"

namespace gantry::core {

// What was noted of a job for its history; unset or "" = nothing.
struct JobNotes {
  std::optional<ExitStatus> derived_exit;  // in the place of its steps' worst one
  std::string admin_comment, system_comment;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "derived_exit", s.derived_exit);
    v(2, "admin_comment", s.admin_comment);
    v(3, "system_comment", s.system_comment);
  }
};

}  // namespace gantry::core
