// Jobs, nodes and partitions as records, with Slurm's keys.
#pragma once

#include <vector>

#include "cli/records.h"
#include "common/proto/cluster.h"
#include "common/proto/job_query.h"

namespace gantry::cli {

void write_job(RecordWriter& out, const proto::JobDetail& job, Instant now);
void write_node(RecordWriter& out, const proto::NodeRow& node);
void write_partition(RecordWriter& out, const proto::PartitionRow& partition,
                     const std::vector<proto::NodeRow>& nodes);

}  // namespace gantry::cli
