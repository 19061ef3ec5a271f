// A small cluster with running and waiting jobs, for golden outputs.
#pragma once

#include "common/proto/messages.h"

namespace gantry::test {

inline constexpr Instant kNow{1'769'850'000'000'000};  // 2026-01-31T09:00:00Z

std::vector<proto::JobRow> sample_jobs();
std::vector<proto::NodeRow> sample_nodes();
std::vector<proto::PartitionRow> sample_partitions();
std::vector<proto::HistoryRow> sample_history();
proto::JobDetail sample_detail();
proto::TenantUsageReply sample_tenants();
proto::ShareTreeReply sample_shares();
proto::PriorityTuplesReply sample_priorities();

}  // namespace gantry::test
