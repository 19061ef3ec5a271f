// Asking for accounting, for sacct and what else looks at jobs that may have ended.
#pragma once

#include <vector>

#include "cli/session.h"
#include "common/proto/history.h"

namespace gantry::cli::slurm {

struct History {
  std::vector<proto::HistoryRow> jobs;  // by id; elements of an array by index, its rest last
  Instant now{};
};

// Every page, each job (with duplicates wanted: each run) once, with a step "extern" in front of a
// started job's numbered ones: in Slurm it is what was run on the nodes from outside.
Result<History> ask_history(Session& session, proto::QueryHistory query);

}  // namespace gantry::cli::slurm
