// Rows about GPUs: who has which GPU of a node and what it does there (parts of NodeRow), and GPUs
// whose MIG mode would have to change.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/resources/gpu.h"
#include "common/time/time.h"
#include "common/types.h"

namespace gantry::proto {

struct GpuHolder {  // a device or slice that a job has
  GpuGrant grant;
  JobId job{};            // 0: a job that the asker may not see
  std::string partition;  // set together with the job
  GANTRY_FIELDS(FIELD(1, grant), FIELD(2, job), FIELD(3, partition))
};

// A GPU that an operator has taken out of service: its jobs continue, but nothing new starts on it.
struct DrainedGpu {
  std::string uuid;
  std::string reason;
  std::string by;
  Instant since{};
  GANTRY_FIELDS(FIELD(1, uuid), FIELD(2, reason), FIELD(3, by), FIELD(4, since))
  friend bool operator==(const DrainedGpu&, const DrainedGpu&) = default;
};

// The state of one GPU or slice of a job when the node last looked, from proto::GpuActivity.
struct GpuTopRow {
  JobId job{};  // only jobs that the asker may see
  std::string display_id, user, partition;
  std::uint32_t gpu = 0;
  std::string name;                   // "h100", "h100 1g.10gb"
  std::optional<std::uint32_t> busy;  // percent; not set: the driver does not report it
  std::uint32_t memory_mib = 0, of_memory_mib = 0;
  std::optional<std::uint32_t> power_w;
  std::optional<Duration> idle;
  bool has_process = false;
  GANTRY_FIELDS(FIELD(1, job), FIELD(2, display_id), FIELD(3, user), FIELD(4, partition),
                FIELD(5, gpu), FIELD(6, name), FIELD(7, busy), FIELD(8, memory_mib),
                FIELD(9, of_memory_mib), FIELD(10, power_w), FIELD(11, idle),
                FIELD(12, has_process))
};

// A GPU whose MIG mode would have to change for waiting jobs. An operator has to do this; Gantry
// never does. Nobody has the GPU or a slice of it.
struct MigModeRow {
  std::string node;
  std::uint32_t gpu = 0;  // GpuDevice::index
  std::string model;
  bool on = false;         // the mode that is needed
  std::string profile;     // what the jobs wait for; "" = whole GPUs
  JobId first;             // first of the waiting jobs
  std::uint32_t jobs = 0;  // number of waiting jobs, at least
  // true: no GPU in that mode could ever run them; false: such GPUs are in use.
  bool only_way = false;
  GANTRY_FIELDS(FIELD(1, node), FIELD(2, gpu), FIELD(3, model), FIELD(4, on), FIELD(5, profile),
                FIELD(6, first), FIELD(7, jobs), FIELD(8, only_way))
};

struct PlanMigModes {  // operators
  GANTRY_FIELDS()
};

struct MigModePlan {
  std::vector<MigModeRow> rows;  // in the order of the waiting jobs
  Instant now{};
  GANTRY_FIELDS(FIELD(1, rows), FIELD(2, now))
};

}  // namespace gantry::proto
