// ginfo --gpus: a line for each GPU, or for each slice of one that is partitioned.
#pragma once

#include <span>
#include <vector>

#include "cli/table.h"
#include "common/proto/cluster.h"

namespace gantry::cli {

struct GpuRow {
  const proto::NodeRow* node = nullptr;
  const GpuDevice* gpu = nullptr;
  const MigProfile* profile = nullptr;       // of a slice
  std::optional<std::uint32_t> start;        // of a slice
  const proto::GpuHolder* holder = nullptr;  // null = free
};

// A device in whole use or free is one row; a shared one has a row for each part, a partitioned one
// has a row for each slice that exists or is held, or one without a slice.
std::vector<GpuRow> gpu_rows(const std::vector<proto::NodeRow>& nodes);

std::span<const Column<GpuRow>> gpu_columns();
inline constexpr std::string_view kGpuFormat = "%N %g %m %y %u %s %t %j %e";

}  // namespace gantry::cli
