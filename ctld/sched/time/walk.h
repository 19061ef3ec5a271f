// The walk along the ends of running jobs, for Timeline::earliest().
//
// For a job on one node: only a node where something is released can become sufficient, so no node
// is examined before that, and the walk ends at the first sufficient one. For several nodes: how
// many tasks fit is noted for every allowed node, and nodes are counted by that number, so that a
// step which cannot succeed costs one comparison.
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

// A start on nodes, now or later.
struct Slot {
  Instant start{};
  std::vector<Share> shares;
  std::vector<Room> room;  // free on each at `start`, before reservations are subtracted
};

struct Freed {  // what a start or a reservation of this plan releases later
  Instant at;
  std::uint32_t node = 0;
  bool reserved = false;  // a reservation, which Timeline::fits() counts: adds nothing here
  Room room;
};

// The notes about nodes during a walk. A note is valid if its stamp is the walk's, so no note has
// to be cleared between two walks.
struct WalkNotes {
  struct Note {
    std::uint32_t stamp = 0;
    std::uint32_t fits = 0;
    std::uint32_t dirty = 0;  // the moment in which it last became freer
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
// number of ends examined.
std::optional<Slot> walk_ends(const WalkInput& input, const JobClass& cls, const Bits& allowed,
                              Instant from, Instant before, std::uint64_t& steps);

}  // namespace gantry::sched
