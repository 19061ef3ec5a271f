// The order of the rows of PriorityTuples, which is the order in which the scheduler considers
// waiting jobs. The order is total, because no two rows have the same job and the same tasks of it.
#pragma once

#include <cstdint>
#include <limits>
#include <tuple>

#include "common/proto/tenancy_view.h"

namespace gantry::proto {

inline bool comes_first(const PriorityRow& a, const PriorityRow& b) {
  const auto before_shares = [](const PriorityRow& r) {
    return std::tuple{-std::int64_t{r.partition_priority}, -std::int64_t{r.rank}, r.borrow_levels};
  };
  const auto behind_shares = [](const PriorityRow& r) {
    constexpr double kUnused = std::numeric_limits<double>::infinity();
    return std::tuple{-r.project_level.value_or(kUnused), -r.user_level.value_or(kUnused),
                      -r.priority, r.since, r.job};
  };
  if (before_shares(a) != before_shares(b)) return before_shares(a) < before_shares(b);
  if (a.share_values != b.share_values) return a.share_values < b.share_values;
  return behind_shares(a) < behind_shares(b);
}

}  // namespace gantry::proto
