// ginfo --gpus: a line for each GPU, or for each slice of a partitioned GPU.
#pragma once

#include <span>
#include <vector>

#include "cli/table.h"
#include "common/proto/cluster.h"

namespace gantry::cli {

struct GpuRow {
  const proto::NodeRow* node = nullptr;
  const GpuDevice* gpu = nullptr;
  const MigProfile* profile = nullptr;       // null: no slice
  std::optional<std::uint32_t> start;        // where the slice starts
  const proto::GpuHolder* holder = nullptr;  // null = free
};

// The rows of all GPUs. A GPU that is free or used as a whole has one row. A shared GPU has a row
// for each part that is held. A partitioned GPU has a row for each slice that exists or is held, or
// one row without a slice.
std::vector<GpuRow> gpu_rows(const std::vector<proto::NodeRow>& nodes);

std::span<const Column<GpuRow>> gpu_columns();
inline constexpr std::string_view kGpuFormat = "%N %g %m %y %u %s %t %j %e";

}  // namespace gantry::cli
