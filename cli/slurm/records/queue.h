// Asking the controller for the queue, for squeue and others that list jobs in Slurm's manner.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/session.h"
#include "cli/slurm/records/job_fields.h"

namespace gantry::cli::slurm {

struct QueueQuestion {
  proto::ListJobs list;
  std::vector<std::string> qos;         // none = any, normal = the default one; needs details
  std::vector<std::string> licenses{};  // none = any; needs details
  std::string not_of{};                 // jobs of anyone but this user
  bool each_task = false;               // the pending rest of an array as a row for each task
  bool details = false;                 // with what only the job itself knows
  bool one_job = false;                 // and it must exist
};

// Every row, over all pages. With one_job, not_found "there is no job" if it does not exist.
Result<std::vector<QueueRow>> ask_queue(Session& session, const QueueQuestion& question,
                                        std::string_view cluster);

// Of the waiting rest of an array only the tasks that `refs` name, if they name single ones of it.
// False: none of them is in it.
bool narrow_array(proto::JobRow& row, std::span<const proto::JobRef> refs);

// Slurm's sort keys: letters of -o, with + (default) or - in front, parted by commas. The error of
// check_queue_sort() is Slurm's; letters that no field has are left out by sort_queue().
Result<void> check_queue_sort(std::string_view keys);
void sort_queue(std::vector<QueueRow>& rows, std::string_view keys);
bool sort_needs_detail(std::string_view keys);

// Adds the states of a comma list; the error is Slurm's, with the valid ones.
Result<void> add_states(std::vector<std::string>& states, std::string_view text);

}  // namespace gantry::cli::slurm
