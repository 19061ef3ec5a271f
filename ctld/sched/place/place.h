// Where a job starts now: on what is free and not needed by a reservation while it runs.
//
// Nodes are tried in this order: those that a reservation waits for (a short job there spares the
// rest), then the others; nodes of pools that are spread over come last, the emptiest first.
// - On nodes with GPUs a job of one node goes where it leaves the least of the free GPUs to no use
// of
//   the requests that are to be expected (gpu_scores.h), of equals to one in use rather than to an
//   idle one, then to the first. While nothing is known of requests: as the rest, but of equals
//   that leaves the fewest GPUs idle.
// - A job without GPUs first looks for a node that has none idle.
// - The rest: nodes partly in use, the fullest by cores first, then idle ones, the smallest first;
//   ties by the leaf of the topology with the fewest idle nodes left, then by node number.
// - Slices go where mig_fleet.h says.
// A job of several nodes starts on all of them or not at all; topology.h says what its request
// does.
#pragma once

#include <optional>
#include <vector>

#include "ctld/sched/nodes/eligible.h"
#include "ctld/sched/nodes/grid.h"
#include "ctld/sched/nodes/neighbours.h"
#include "ctld/sched/place/gpu_scores.h"
#include "ctld/sched/time/timeline.h"

namespace gantry::sched {

// Nodes and tasks, by node; nullopt if it does not fit now. With `hopeful` (a part of `allowed`),
// only those are looked at, and nodes found too small for all tasks of a one-node job are taken out
// of it: within one plan they stay too small. Without `neighbours` every node's jobs will do;
// without `scores`, which are settled, nodes with GPUs are as any.
std::optional<std::vector<Share>> find_place(const Grid& grid, const Timeline& timeline,
                                             const Bits& allowed, const JobClass& cls,
                                             Bits* hopeful = nullptr,
                                             const Neighbours* neighbours = nullptr,
                                             GpuScores* scores = nullptr);

// The concrete CPUs, memory, scratch and devices of a place. `end`: the job is gone by then.
std::vector<NodeGrant> make_grants(const Grid& grid, const JobClass& cls,
                                   const std::vector<Share>& shares, Instant end);

// Whether the node has devices for it, beyond the numbers: slices may fit where they cannot be cut
// out, or where the place is kept for another; parts of GPUs and whole ones where they do not lie
// together.
bool has_devices(const Grid& grid, const JobClass& cls, std::uint32_t n, Instant end);

// What the class asks for, where it asks for slices of GPUs.
inline MigAsk ask_of(const JobClass& cls, Instant end) {
  const JobShape& shape = cls.key.shape;
  return {shape.gpu_slice, cls.key.time_limit ? end : kMigNever, cls.index, cls.key.partition,
          DevicePart{shape.gpu_share}};
}
inline std::uint32_t slices_for(const JobClass& cls) {  // or one to have a part of
  return cls.key.shape.gpu_share > 0 ? 1 : cls.key.shape.gpus_per_node;
}

// Why a class that waits has no place now although enough nodes have room, reservations left aside:
// its topology request, or whom it may not have beside it. nullopt: there is not enough room.
std::optional<Verdict> explain_place(const Grid& grid, const Bits& allowed, const JobClass& cls,
                                     const Neighbours* neighbours);

// Nodes on which at least one task fits now, reservations left aside.
std::uint32_t count_fitting(const Grid& grid, const Bits& allowed, const JobClass& cls);

}  // namespace gantry::sched
