// Jobs as Slurm's data_parser shows them.
#pragma once

#include <vector>

#include "cli/columns/job_columns.h"
#include "cli/slurm/json.h"
#include "cli/slurm/records/job_fields.h"

namespace gantry::cli::slurm {

Tree jobs_tree(const std::vector<QueueRow>& rows);

// Returns {"status": ["SUCCESS"], "return_code": {...}, "signal": {...}}.
Tree exit_code_tree(const ExitStatus& exit);

// Values of jobs as squeue, scontrol and --json show them, for the tables of fields.

// The details of a row's job. If the job was removed after the listing was made, the row has no
// details, and this returns empty ones.
const proto::JobDetail& detail(const QueueRow& v);
inline const JobSpec& spec(const QueueRow& v) {
  return detail(v).spec;
}

void put_reason_or_nodes(std::string& out, const proto::JobRow& row);  // %R
void put_command(std::string& out, const QueueRow& v);
void put_memory(std::string& out, const QueueRow& v);
void put_file(std::string& out, const QueueRow& v, const std::string& pattern);
void put_time_left(std::string& out, const QueueRow& v);
void put_tres(std::string& out, const QueueRow& v);
void put_gpus_per_task(std::string& out, const QueueRow& v);

[[nodiscard]] bool is_held(const proto::JobRow& row);
// The priority to show: 0 while the job is held. This is how Slurm's clients recognise a held job.
[[nodiscard]] std::int64_t shown_priority(const proto::JobRow& row);

// The path of the submitted script; "" if there is none (--wrap, standard input).
std::string command_of(const JobSpec& spec);

// Resources as "cpu=4,mem=8G,node=2,billing=4,gres/gpu=2".
std::string tres_text(const proto::JobRow& row, std::int64_t memory);
std::int64_t memory_in_all(const proto::JobDetail& job);  // bytes over all nodes

}  // namespace gantry::cli::slurm
