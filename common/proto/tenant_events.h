// Events of tenants: client to ctld, and the answer.
#pragma once

#include <string>
#include <vector>

#include "common/fields.h"
#include "common/money/money.h"
#include "common/resources/resources.h"
#include "common/time/time.h"

namespace gantry::proto {

// Events about quota and budgets that filled up: use passed 70, 85 or 100 % of what a tenant owns,
// or a threshold of a budget. There are also events about GPUs that jobs have and do not use.
struct TenantEvents {              // of tenants that the asker may see
  std::vector<std::string> names;  // none = all
  std::uint64_t after = 0;         // only those with a greater number
  std::uint32_t limit = 0;         // the newest; 0 = all that are kept
  GANTRY_FIELDS(FIELD(1, names), FIELD(2, after), FIELD(3, limit))
};

// What is done about idle GPUs, the mildest step first; each after a time that the tenant sets.
enum class IdleGpuStep : std::uint8_t { none = 0, note = 1, warn = 2, requeue = 3, cancel = 4 };
GANTRY_NAMES(IdleGpuStep, {none, "none"}, {note, "note"}, {warn, "warn"}, {requeue, "requeue"},
             {cancel, "cancel"})

struct QuotaAlert {
  std::uint64_t number = 0;  // 1..
  Instant at{};
  std::string tenant;
  std::string flavor;  // "" = all together
  Resource resource = Resource::gpu;
  std::uint32_t percent = 0;  // the threshold that was reached
  std::int64_t used = 0;
  std::int64_t nominal = 0;
  // For an event about a budget; the four members above (except percent) are then not set.
  std::string budget;       // "" = of quota
  std::string period;       // "2026-11"
  Money spent, amount;      // spent up to then, and the budget's amount
  std::uint32_t ended = 0;  // jobs that were ended because of it
  // For an event about GPUs that a job does not use; of the members above only the tenant is then
  // set.
  std::string job{};   // "12", "12_3"; "" = of quota or a budget
  std::string user{};  // owner of the job
  std::string gpus{};  // "gpu01:0,gpu01:3"
  Duration idle{};     // the shortest idle time of these GPUs
  IdleGpuStep step = IdleGpuStep::none;
  bool no_process = false;  // no process runs on any of the GPUs
  friend bool operator==(const QuotaAlert&, const QuotaAlert&) = default;
  GANTRY_FIELDS(FIELD(1, number), FIELD(2, at), FIELD(3, tenant), FIELD(4, flavor),
                FIELD(5, resource), FIELD(6, percent), FIELD(7, used), FIELD(8, nominal),
                FIELD(9, budget), FIELD(10, period), FIELD(11, spent), FIELD(12, amount),
                FIELD(13, ended), FIELD(14, job), FIELD(15, user), FIELD(16, gpus), FIELD(17, idle),
                FIELD(18, step), FIELD(19, no_process))
};

struct TenantEventsReply {
  std::vector<QuotaAlert> events;  // oldest first
  Instant now{};
  GANTRY_FIELDS(FIELD(1, events), FIELD(2, now))
};

}  // namespace gantry::proto
