// Partitions as a subject: the scheduler knows which are down, and each start is checked again.
#include "ctld/core/partition/subject.h"
#include "ctld/core/state/node.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

std::optional<Verdict> check_up(const Context& ctx, const Job& job) {
  const Partition& partition = ctx.state.partition(class_of(ctx.state, job).partition);
  if (partition.up()) return std::nullopt;
  return Verdict{Reason::partition_down, 0, 0, partition.name};
}

}  // namespace

const Subject kPartitions{.name = "partitions", .check = check_up, .looks_later = true};

}  // namespace gantry::core
