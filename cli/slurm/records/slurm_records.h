// Records in the layout of Slurm 25's scontrol show.
#pragma once

#include "cli/columns/node_values.h"
#include "cli/table.h"
#include "common/proto/cluster.h"
#include "common/proto/history.h"
#include "common/proto/job_query.h"
#include "common/proto/reservation.h"

namespace gantry::cli::slurm {

void slurm_job(RecordWriter& out, const proto::JobDetail& job, Instant now, int details);
void slurm_node(RecordWriter& out, const proto::NodeRow& node);
void slurm_partition(RecordWriter& out, const proto::PartitionRow& partition, NodeMembers& members);
void slurm_reservation(RecordWriter& out, const proto::ReservationRow& row);
void slurm_step(RecordWriter& out, const proto::HistoryRow& job, const proto::StepRow& step);

}  // namespace gantry::cli::slurm
