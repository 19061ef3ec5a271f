// Public names for the states of jobs and nodes: one table maps internal states to Slurm's words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/job/job_state.h"
#include "common/proto/cluster.h"
#include "common/proto/job_query.h"
#include "common/result.h"

namespace gantry::cli {

struct JobWords {
  std::string_view state;    // "RUNNING"
  std::string_view compact;  // "R"
};
JobWords words_of(Phase phase, const std::optional<Outcome>& outcome);
// Not set if it is held, or waits for other jobs.
inline std::optional<Instant> eligible_since(const proto::JobRow& row) {
  return row.eligible == Instant{} ? std::nullopt : std::optional(row.eligible);
}
JobWords words_of(const proto::JobRow& row);

// Checks a comma list for -t/--states: Slurm's words, long or short, any case, and "all". Words of
// states that Gantry does not have (SUSPENDED, RESIZING, ...) are allowed and match nothing.
Result<void> check_states(const std::vector<std::string>& states);

std::string shown_id(const proto::JobRow& row);  // "12", "12_3", "12_[4-9%2]", "12+1"
// Ids of all components of a heterogeneous job: "12-14"; "" for any other job.
std::string het_id_set(const proto::JobRow& row);
std::string first_node_of(const std::string& hostlist);  // "" for an empty list
// How long the job has run or ran, without the time for which it was suspended.
Duration run_time(const proto::JobRow& row, Instant now);
// Not set if the job has not started or has no time limit.
std::optional<Instant> expected_end_of(const proto::JobRow& row);
std::string reason_of(const proto::JobRow& row);     // "Resources", "None"; without the numbers
std::string where_or_why(const proto::JobRow& row);  // nodes, or "(Reason)"

std::string node_state(const proto::NodeRow& node);          // "idle", "mixed*", "drained"
std::string node_state_compact(const proto::NodeRow& node);  // "idle", "mix*", "drain"

// GPUs over all nodes: "2"; a part of a GPU as "0.5".
bool has_gpus(const proto::JobRow& row);
std::string gpus_text(const proto::JobRow& row);

std::string labels_text(const std::map<std::string, std::string>& labels);  // "a=1,b=2"
std::string exit_text(const ExitStatus& exit);                              // "1:0"
// The exit code as a shell would return it; 1 for a job that did not complete and has no code.
int exit_code(const proto::JobRow& row);

}  // namespace gantry::cli
