// Asking for accounting, for sacct and what else looks at jobs that may have ended.
#pragma once

#include <optional>
#include <string>
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

// "normal" is the tenant's default one.
std::string_view priority_class_of(const proto::HistoryRow& job);

// Only jobs of these priority classes and wckeys, by which the controller does not search; none =
// any. And starts and ends as if nothing had been before or after a window.
void keep_only(History& history, const std::vector<std::string>& qos,
               const std::vector<std::string>& wckeys);
void cut_times(History& history, std::optional<Instant> start, std::optional<Instant> end);

}  // namespace gantry::cli::slurm
