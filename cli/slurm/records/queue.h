// Requests the queue from the controller, for squeue and other commands that list jobs as Slurm
// does.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/session.h"
#include "cli/slurm/records/job_fields.h"

namespace gantry::cli::slurm {

struct QueueQuestion {
  proto::ListJobs list;
  std::vector<std::string> qos;         // empty = any; "normal" = the default class; needs details
  std::vector<std::string> licenses{};  // empty = any; needs details
  std::string not_of{};                 // lists only jobs of other users than this one
  bool each_task = false;  // each task of an array that has not started gets a row of its own
  bool details = false;    // fetch values that only the job itself has, not the listing
  bool one_job = false;    // only one job is requested, and it must exist
};

// All rows, from all pages. With one_job, the error is not_found ("there is no job") if it does not
// exist.
Result<std::vector<QueueRow>> ask_queue(Session& session, const QueueQuestion& question,
                                        std::string_view cluster);

// If `refs` name single tasks of an array, reduces the row of its waiting rest to these tasks.
// Returns false if no task remains.
bool narrow_array(proto::JobRow& row, std::span<const proto::JobRef> refs);

// Slurm's sort keys: letters of -o, with + (default) or - before each, separated by commas. The
// error of check_queue_sort() has Slurm's text; sort_queue() ignores letters without a field.
Result<void> check_queue_sort(std::string_view keys);
void sort_queue(std::vector<QueueRow>& rows, std::string_view keys);
// A row for each partition of a waiting job that may go to several.
void split_by_partition(std::vector<QueueRow>& rows);
bool sort_needs_detail(std::string_view keys);

// Adds the states of a comma-separated list. The error has Slurm's text, with the valid states.
Result<void> add_states(std::vector<std::string>& states, std::string_view text);

}  // namespace gantry::cli::slurm
