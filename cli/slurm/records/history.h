// Requests accounting, for sacct and other commands that show jobs that may have ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/session.h"
#include "common/proto/control.h"
#include "common/proto/history.h"
#include "common/proto/message_table.h"

namespace gantry::cli::slurm {

struct History {
  std::vector<proto::HistoryRow> jobs;  // by id; tasks of an array by index, then the array's rest
  Instant now{};
};

// Reads all pages. The result has each job once, or each run of it once if the query asks for
// duplicates. A started job gets a step "extern" before its numbered steps: in Slurm it contains
// processes on the nodes that Slurm did not start.
Result<History> ask_history(Session& session, proto::QueryHistory query);

// The job's priority class; "normal" stands for the tenant's default class.
std::string_view priority_class_of(const proto::HistoryRow& job);

inline constexpr Duration kUnlimited{INT64_MAX};  // a job without a time limit

// Filters that the controller does not apply. Empty or unset filters match every job.
struct HistorySieve {
  struct Range {
    std::uint32_t low;
    std::uint32_t high;
  };
  std::vector<std::string> qos, wckeys, groups, reasons;
  std::optional<Range> cpus, nodes;
  // With limit_min alone, the limit must be exactly this.
  std::optional<Duration> limit_min, limit_max;
};
void keep_only(History& history, const HistorySieve& sieve);

// Moves starts and ends that lie outside of a time window to its borders.
void cut_times(History& history, std::optional<Instant> start, std::optional<Instant> end);

// How many requests the controller has received, by message and by user, for sdiag and sacctmgr.

enum class CallOrder : std::uint8_t { count, name, time, mean };

// The two tables, in Slurm's layout. Times are in microseconds.
void print_calls(const proto::ShowStatsReply& stats, CallOrder order);

// "Fri Nov 27 20:43:04 2026 (1795812184)"
std::string c_time(Instant t);

}  // namespace gantry::cli::slurm
