// Finds where a job starts now: on resources that are free, and that no reservation needs while the
// job runs.
//
// Nodes are tried in this order: those that a reservation waits for (a short job there spares the
// others), then the others; nodes of pools that are filled from the emptiest node on come last.
// - On nodes with GPUs, a job of one node goes where it leaves the fewest free GPUs useless to the
//   requests that are expected (gpu_scores.h); among equal nodes, to one in use rather than to an
//   idle one, then to the first. While no requests are known, the next rules apply, but among
//   equal nodes it goes to the one on which the fewest GPUs stay idle.
// - A job without GPUs tries first the nodes that have no idle GPU.
// - Else: nodes partly in use, the fullest by cores first, then idle ones, the smallest first.
//   Equal nodes: by the leaf of the topology with the fewest idle nodes, then by node number.
// - For slices, mig_fleet.h gives the order. A job of several nodes starts on all of them or not at
//   all; topology.h tells what a topology request changes.
#pragma once

#include <optional>
#include <vector>

#include "ctld/sched/nodes/eligible.h"
#include "ctld/sched/nodes/grid.h"
#include "ctld/sched/nodes/neighbours.h"
#include "ctld/sched/place/gpu_scores.h"
#include "ctld/sched/time/timeline.h"

namespace gantry::sched {

// Nodes and their tasks, by node; nullopt if the job does not fit now. With `hopeful` (a part of
// `allowed`) only the nodes in it are tried, and nodes too small for all tasks of a one-node job
// are removed from it: within one plan they stay too small. Without `neighbours` every node may be
// shared; without `scores` (which must be settled) nodes with GPUs are treated like any other.
std::optional<std::vector<Share>> find_place(const Grid& grid, const Timeline& timeline,
                                             const Bits& allowed, const JobClass& cls,
                                             Bits* hopeful = nullptr,
                                             const Neighbours* neighbours = nullptr,
                                             GpuScores* scores = nullptr);

// Chooses the CPUs, memory, scratch and devices of a place. `end`: the job has ended by then.
std::vector<NodeGrant> make_grants(const Grid& grid, const JobClass& cls,
                                   const std::vector<Share>& shares, Instant end);

// Whether the node has devices for the job, beyond what the counts say: the counted slices may be
// impossible to make together, or kept for another job, and the counted parts of GPUs may lie on
// separate devices.
bool has_devices(const Grid& grid, const JobClass& cls, std::uint32_t n, Instant end);

// The request of a class that asks for slices of GPUs.
inline MigAsk ask_of(const JobClass& cls, Instant end) {
  const JobShape& shape = cls.key.shape;
  return {shape.gpu_slice, cls.key.least_limit() ? end : kMigNever, cls.index, cls.key.partition,
          DevicePart{shape.gpu_share}};
}
inline std::uint32_t slices_for(const JobClass& cls) {  // 1 if it asks for a part
  return cls.key.shape.gpu_share > 0 ? 1 : cls.key.shape.gpus_per_node;
}

// Why a waiting class has no place now although enough nodes have room (reservations do not count
// here): its topology request, or jobs beside which it may not run. nullopt if not enough nodes
// have room, or neither is the reason.
std::optional<Verdict> explain_place(const Grid& grid, const Bits& allowed, const JobClass& cls,
                                     const Neighbours* neighbours);

// The number of nodes on which the job's even share of tasks fits now; reservations do not count.
std::uint32_t count_fitting(const Grid& grid, const Bits& allowed, const JobClass& cls);

}  // namespace gantry::sched
