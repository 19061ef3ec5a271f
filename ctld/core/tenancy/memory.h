// TenancyMemory: quota in use, factors of the priority, and counts of submits; a restart empties it
// or computes it again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "common/time/time.h"
#include "common/types.h"
#include "ctld/sched/change.h"
#include "ctld/sched/tenant/quota.h"

namespace gantry::core {

struct SubmitWindow {
  std::int64_t minute = 0;  // minutes of cluster time since the epoch
  std::uint32_t submits = 0;
};

struct QuotaLevel {            // state of the alerts of a tenant's quota cell; see quota_alerts.h
  std::size_t level = 0;       // number of thresholds reached
  std::size_t told_level = 0;  // the level in the newest event
  Instant told{};
};

// Factors of the weighted priority, as last computed; see multifactor.h.
struct Weights {
  Instant as_of{};
  double cores = 0;                                 // total of the cluster
  std::unordered_map<sched::ShareId, double> fair;  // factor, by the user's leaf
};

struct TenancyMemory {
  std::optional<sched::QuotaTree> quota;  // quota in use by placed jobs
  std::map<std::tuple<std::uint32_t, std::uint32_t, Resource>, QuotaLevel> quota_levels;
  Weights weights;
  std::map<PartitionId, SubmitWindow> submit_windows;
};

}  // namespace gantry::core
