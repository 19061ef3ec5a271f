// The walk along the ends of running jobs, for Timeline::earliest().
//
// One node: only a node where something is given back can become good enough, so no node is looked
// at beforehand, and the walk ends at the first one that is. Several nodes: how many tasks fit is
// noted for every allowed node, and nodes are counted by that number, so that a step which cannot
// succeed costs one comparison.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ctld/sched/bits.h"
#include "ctld/sched/nodes/running.h"
#include "ctld/sched/queue/queue.h"
#include "ctld/sched/time/windows.h"

namespace gantry::sched {

class Timeline;

// A start on nodes, at once or ahead.
struct Slot {
  Instant start{};
  std::vector<Share> shares;
  std::vector<Room> room;  // free on each at `start`, before reservations are taken off
};

struct Freed {  // room that a start or a reservation of this plan gives back later
  Instant at;
  std::uint32_t node = 0;
  bool reserved = false;  // of a reservation, which Timeline::fits() knows: no room
  Room room;
};

// The notes of walks about nodes. A note is valid if its stamp is the walk's, so that none has to
// be cleared between two walks.
struct WalkNotes {
  struct Note {
    std::uint32_t stamp = 0;
    std::uint32_t fits = 0;
    std::uint32_t dirty = 0;  // the moment in which it last got room
    Room room;
  };
  std::vector<Note> notes;  // by node
  std::uint32_t stamp = 0;  // of the last walk
};

struct WalkInput {
  const Timeline& timeline;
  const Grid& grid;
  const Running& running;
  const Windows& windows;
  std::span<const Freed> freed;  // by time, then node
  WalkNotes& notes;
};

// The earliest start at or after `from` and before `before`, on allowed nodes; `steps` grows by the
// ends looked at.
std::optional<Slot> walk_ends(const WalkInput& input, const JobClass& cls, const Bits& allowed,
                              Instant from, Instant before, std::uint64_t& steps);

}  // namespace gantry::sched
