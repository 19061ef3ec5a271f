// Where a job starts now: on what is free and not needed by a reservation while it runs.
//
// Nodes are tried in this order: those that a reservation waits for (a short job there spares the
// rest), then those partly in use, the fullest by cores first, then idle ones, the smallest first;
// ties by the leaf of the topology with the fewest idle nodes left, then by node number. Of the
// first 64 of such a family on which a job of one node fits, one that leaves fewer GPUs idle goes
// before (docs/decisions.md, "Whole GPUs"). Nodes of pools that are spread over come last, the
// emptiest first. A job of several nodes starts on all of them or not at all; topology.h says what
// its wish does.
#pragma once

#include <optional>
#include <vector>

#include "ctld/sched/eligible.h"
#include "ctld/sched/grid.h"
#include "ctld/sched/neighbours.h"
#include "ctld/sched/timeline.h"

namespace gantry::sched {

// Nodes and tasks, by node; nullopt if it does not fit now. With `hopeful` (a part of `allowed`),
// only those are looked at, and nodes found too small for all tasks of a one-node job are taken out
// of it: within one plan they stay too small. Without `neighbours` every node's jobs will do.
std::optional<std::vector<Share>> find_place(const Grid& grid, const Timeline& timeline,
                                             const Bits& allowed, const JobClass& cls,
                                             Bits* hopeful = nullptr,
                                             const Neighbours* neighbours = nullptr);

// The concrete CPUs, memory, scratch and devices of a place. `end`: the job is gone by then.
std::vector<NodeGrant> make_grants(const Grid& grid, const JobClass& cls,
                                   const std::vector<Share>& shares, Instant end);

// Whether the node has devices for it, beyond the numbers: slices may fit where they cannot be cut
// out, or where the place is kept for another; parts of GPUs and whole ones where they do not lie
// together.
bool has_devices(const Grid& grid, const JobClass& cls, std::uint32_t n, Instant end);

// Why a class that waits has no place now although enough nodes have room, reservations left aside:
// its topology wish, or whom it may not have beside it. nullopt: there is not enough room.
std::optional<Verdict> explain_place(const Grid& grid, const Bits& allowed, const JobClass& cls,
                                     const Neighbours* neighbours);

// Nodes on which at least one task fits now, reservations left aside.
std::uint32_t count_fitting(const Grid& grid, const Bits& allowed, const JobClass& cls);

}  // namespace gantry::sched
