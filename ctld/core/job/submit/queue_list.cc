#include "ctld/core/job/submit/queue_list.h"

#include <algorithm>

#include <fmt/core.h>

#include "common/text/split.h"
#include "ctld/core/tenancy/queues.h"

namespace gantry::core {
namespace {

constexpr std::size_t kMostQueues = 32;  // that a job names

}  // namespace

Result<std::vector<std::string>> names_of_list(std::string_view list) {
  std::vector<std::string> names = split_list(list);
  if (!names.empty() && names.size() <= kMostQueues) return names;
  return fail(ErrorCode::invalid_argument,
              fmt::format("a job names 1 to {} partitions, not {}", kMostQueues, names.size()));
}

std::vector<PartitionId> queues_beside(const State& state, PartitionId present,
                                       const std::vector<PartitionId>& queues) {
  const std::string tenant = tenant_name_of(state, state.partition(present));
  std::vector<PartitionId> out;
  for (const PartitionId id : queues)
    if (std::find(out.begin(), out.end(), id) == out.end() &&
        tenant_name_of(state, state.partition(id)) == tenant)
      out.push_back(id);
  if (out.size() < 2) out.clear();
  return out;
}

}  // namespace gantry::core
