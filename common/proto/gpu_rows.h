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
  JobId job{};            // 0: of somebody whose jobs the asker may not see
  std::string partition;  // set together with the job
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "grant", s.grant);
    v(2, "job", s.job);
    v(3, "partition", s.partition);
  }
};

// A GPU that an operator has taken out of service: its jobs go on, but nothing new starts on it.
struct DrainedGpu {
  std::string uuid;
  std::string reason;
  std::string by;
  Instant since{};
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "uuid", s.uuid);
    v(2, "reason", s.reason);
    v(3, "by", s.by);
    v(4, "since", s.since);
  }
  friend bool operator==(const DrainedGpu&, const DrainedGpu&) = default;
};

// The state of one GPU or slice of a job when the node last looked, from proto::GpuActivity.
struct GpuTopRow {
  JobId job{};  // only jobs that the asker may see
  std::string display_id, user, partition;
  std::uint32_t gpu = 0;
  std::string name;                   // "h100", "h100 1g.10gb"
  std::optional<std::uint32_t> busy;  // percent; not set: the driver does not tell
  std::uint32_t memory_mib = 0, of_memory_mib = 0;
  std::optional<std::uint32_t> power_w;
  std::optional<Duration> idle;
  bool has_process = false;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "job", s.job);
    v(2, "display_id", s.display_id);
    v(3, "user", s.user);
    v(4, "partition", s.partition);
    v(5, "gpu", s.gpu);
    v(6, "name", s.name);
    v(7, "busy", s.busy);
    v(8, "memory_mib", s.memory_mib);
    v(9, "of_memory_mib", s.of_memory_mib);
    v(10, "power_w", s.power_w);
    v(11, "idle", s.idle);
    v(12, "has_process", s.has_process);
  }
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
  // true: no GPU in that mode could ever serve them; false: such GPUs are in use.
  bool only_way = false;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "node", s.node);
    v(2, "gpu", s.gpu);
    v(3, "model", s.model);
    v(4, "on", s.on);
    v(5, "profile", s.profile);
    v(6, "first", s.first);
    v(7, "jobs", s.jobs);
    v(8, "only_way", s.only_way);
  }
};

struct PlanMigModes {  // operators
  template <class Self, class V>
  static void fields(Self&, V&&) {}
};

struct MigModePlan {
  std::vector<MigModeRow> rows;  // in the order of the waiting jobs
  Instant now{};
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "rows", s.rows);
    v(2, "now", s.now);
  }
};

}  // namespace gantry::proto
