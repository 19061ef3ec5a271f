// Jobs, nodes and partitions as records, with Slurm's keys.
#pragma once

#include "cli/columns/node_members.h"
#include "cli/records.h"
#include "common/proto/cluster.h"
#include "common/proto/job_query.h"

namespace gantry::cli {

void write_job(RecordWriter& out, const proto::JobDetail& job, Instant now);
void write_node(RecordWriter& out, const proto::NodeRow& node);
void write_partition(RecordWriter& out, const proto::PartitionRow& partition, NodeMembers& members);

// "afterok:12,after:13+5", as --dependency takes it.
std::string dependency_text(const JobSpec& spec);

// What a queued job still waits for, as Slurm shows it: "afterok:12(unfulfilled)". "" = nothing.
std::string dependency_left(const proto::JobDetail& job);

// An output file of the job as its node expands the pattern, absolute; what is not decided yet
// stays as it is.
std::string output_path(const std::string& pattern, const JobSpec& spec, const proto::JobRow& row);

}  // namespace gantry::cli
