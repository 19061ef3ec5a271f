// The fields that squeue can show of a job: Slurm's letters, names and headers, and the words it
// uses for no value.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "cli/slurm/format.h"
#include "common/proto/job_query.h"

namespace gantry::cli::slurm {

// A job of the queue's listing. `detail` is set if a requested field needs it.
struct QueueRow {
  proto::JobRow row;
  std::optional<proto::JobDetail> detail;
  Instant now{};
  std::string cluster{};
};

inline const proto::JobRow& row_of(const QueueRow& view) {
  return view.row;
}

std::span<const Column<QueueRow>> queue_fields();

// The GPUs of each node: "gres:gpu:a100:2"; "" if GPUs were not asked for by node.
std::string tres_per_node(const JobSpec& spec);

std::optional<Instant> expected_end(const proto::JobRow& row);
std::string group_name(Gid gid);

}  // namespace gantry::cli::slurm
