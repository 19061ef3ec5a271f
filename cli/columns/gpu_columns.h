// ginfo --gpus: a line for each GPU, or for each slice of a partitioned GPU.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/table.h"
#include "common/proto/cluster.h"

namespace gantry::cli {

struct GpuRow {
  const proto::NodeRow* node = nullptr;
  const GpuDevice* gpu = nullptr;
  const MigProfile* profile = nullptr;       // null: the row is not about a slice
  std::optional<std::uint32_t> start;        // where the slice starts
  const proto::GpuHolder* holder = nullptr;  // null = free
};

// The rows of all GPUs. A GPU that is free or used as a whole has one row. A shared GPU has a row
// for each part that is held. A partitioned GPU has a row for each slice that exists or is held, or
// one row without a slice.
std::vector<GpuRow> gpu_rows(const std::vector<proto::NodeRow>& nodes);

std::span<const Column<GpuRow>> gpu_columns();
inline constexpr std::string_view kGpuFormat = "%N %g %m %y %u %s %t %j %e";

// The drawing of `ginfo --layout` and the comparison of `ginfo --drift`.

// A line for each GPU of the nodes: its slices with their jobs, what is free, and what is out of
// service. A line has at most `width` columns, but never fewer than its slices need.
std::vector<std::string> layout_lines(const std::vector<proto::NodeRow>& nodes,
                                      std::uint32_t width);

// A difference between what should be there and what was found: a GPU that is missing or out of
// service; a driver or model that differs from most nodes or from the other GPUs of its node; a
// slice that a job was given and that does not exist; or a slice that no job holds.
struct Drift {
  std::string node;
  std::string gpu;  // index of the GPU, "3"; "" = the difference concerns the node
  std::string wanted, found;
  friend bool operator==(const Drift&, const Drift&) = default;
};
std::vector<Drift> drift_of(const std::vector<proto::NodeRow>& nodes);

}  // namespace gantry::cli
