// Jobs, nodes and partitions as records with Slurm's keys.
#pragma once

#include "cli/columns/node_values.h"
#include "cli/table.h"
#include "common/proto/cluster.h"
#include "common/proto/history.h"
#include "common/proto/job_query.h"

namespace gantry::cli {

void write_job(RecordWriter& out, const proto::JobDetail& job, Instant now);
// A job that only accounting has: its stored values, with the same keys.
void write_ended_job(RecordWriter& out, const proto::HistoryRow& job, Instant now);
void write_node(RecordWriter& out, const proto::NodeRow& node);
void write_partition(RecordWriter& out, const proto::PartitionRow& partition, NodeMembers& members);

// Dependencies as --dependency takes them: "afterok:12,after:13+5".
std::string dependency_text(const JobSpec& spec);

// The dependencies that a queued job still waits for, as Slurm shows them:
// "afterok:12(unfulfilled)"; "" if there are none.
std::string dependency_left(const proto::JobDetail& job);

// The absolute path of an output file of the job, expanded as its node expands the pattern. Parts
// that are not decided yet remain as they are.
std::string output_path(const std::string& pattern, const JobSpec& spec, const proto::JobRow& row);

}  // namespace gantry::cli
