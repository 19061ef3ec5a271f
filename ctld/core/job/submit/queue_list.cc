#include "ctld/core/job/submit/queue_list.h"

#include <algorithm>

#include <fmt/core.h>

#include "common/text/split.h"
#include "ctld/core/context.h"
#include "ctld/core/resources/forecast.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/queues.h"

namespace gantry::core {
namespace {

constexpr std::size_t kMostNames = 32;  // partitions, or reservations, that a job may name

}  // namespace

Result<std::vector<std::string>> names_of_list(std::string_view list, std::string_view things) {
  std::vector<std::string> names;
  for (std::string& name : split_list(list))
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(std::move(name));
  if (!names.empty() && names.size() <= kMostNames) return names;
  return fail(ErrorCode::invalid_argument,
              fmt::format("a job names 1 to {} {}, not {}", kMostNames, things, names.size()));
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

std::optional<Instant> start_within(const Context& ctx, const Partition& partition,
                                    const JobShape& shape, std::optional<Duration> limit,
                                    const AdvanceReservation& r) {
  const auto found = partition.up() ? forecast(ctx, partition, shape, &r) : std::nullopt;
  if (!found || !limit) return std::nullopt;
  const Instant at = std::max(found->start, r.from);
  if (at + *limit <= r.until) return at;
  if (!r.repeats) return std::nullopt;
  return occurrence_of(next_of(*r.repeats)).from;
}

}  // namespace gantry::core
