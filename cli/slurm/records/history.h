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

inline constexpr Duration kUnlimited{INT64_MAX};  // a time limit that there is not

// By what the controller does not search; what is empty or not said is any.
struct HistorySieve {
  struct Range {
    std::uint32_t low;
    std::uint32_t high;
  };
  std::vector<std::string> qos, wckeys, groups, reasons;
  std::optional<Range> cpus, nodes;
  std::optional<Duration> limit_min, limit_max;  // limit_min alone: exactly this
};
void keep_only(History& history, const HistorySieve& sieve);

// Starts and ends as if nothing had been before or after a window.
void cut_times(History& history, std::optional<Instant> start, std::optional<Instant> end);

}  // namespace gantry::cli::slurm
