// Which jobs slow down which others on a node: the reports of node daemons in heartbeats, and the
// query of `gctl neighbours`.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/fields.h"
#include "common/proto/attempt.h"
#include "common/proto/job_ref.h"
#include "common/time/time.h"
#include "common/types.h"

namespace gantry::proto {

enum class SharedResource : std::uint8_t {
  cpu = 1,
  memory = 2,
  disk = 3,
  network = 4,
  memory_traffic = 5,
  pcie = 6
};
GANTRY_NAMES(SharedResource, {cpu, "cpu"}, {memory, "memory"}, {disk, "disk"}, {network, "network"},
             {memory_traffic, "memory-bandwidth"}, {pcie, "pcie"})

enum class SharingCause : std::uint8_t { neighbours = 1, itself = 2, machine = 3, unknown = 4 };
GANTRY_NAMES(SharingCause, {neighbours, "neighbours"}, {itself, "self-inflicted"},
             {machine, "machine"}, {unknown, "unknown"})

// A job that takes much of the resource; percent.
struct SharingJob {
  AttemptKey key;
  std::uint32_t share = 0;  // part of all use
  std::uint32_t rise = 0;   // its part of what came to be used more than before
  GANTRY_FIELDS(FIELD(1, key), FIELD(2, share), FIELD(3, rise))
};

// A finding means that a job is slowed down on a resource of its node, or that the resource is
// saturated. Numbers are percent.
struct SharingFinding {
  std::uint64_t number =
      0;  // number at the node's daemon; identifies the finding together with `since`
  SharedResource resource = SharedResource::cpu;
  std::string device;                // "nvme0n1", "eth0 out"; "" = there is only one
  std::optional<AttemptKey> victim;  // unset: the resource is saturated, and no job suffers
  Instant since{}, last{};           // by the node's clock
  std::optional<Instant> ended;
  SharingCause cause = SharingCause::unknown;
  std::vector<SharingJob> by;
  std::uint32_t confidence = 0;
  std::uint32_t level = 0, saturated = 0;  // how full it is, and from when on that is too much
  std::uint32_t held_up = 0, own = 0;      // the victim's waiting, by others and by itself
  std::uint32_t machine = 0;               // share of use that is no job's
  GANTRY_FIELDS(FIELD(1, number), FIELD(2, resource), FIELD(3, device), FIELD(4, victim),
                FIELD(5, since), FIELD(6, last), FIELD(7, ended), FIELD(8, cause), FIELD(9, by),
                FIELD(10, confidence), FIELD(11, level), FIELD(12, saturated), FIELD(13, held_up),
                FIELD(14, own), FIELD(15, machine))
};

// A job that is throttled for a while, for the sake of others.
struct SharingHold {
  AttemptKey key;
  SharedResource resource = SharedResource::disk;
  std::string device;
  std::uint64_t most = 0;  // bytes per second, each of reads and writes; of cpu: its weight
  Instant since{}, until{};
  std::uint32_t times = 0;        // how often it was throttled here
  std::optional<Instant> undone;  // set: it is over
  GANTRY_FIELDS(FIELD(1, key), FIELD(2, resource), FIELD(3, device), FIELD(4, most),
                FIELD(5, since), FIELD(6, until), FIELD(7, times), FIELD(8, undone))
};

struct NodeSharing {  // what is in force now, and what has ended lately
  std::vector<SharingFinding> findings;
  std::vector<SharingHold> holds;
  GANTRY_FIELDS(FIELD(1, findings), FIELD(2, holds))
};

struct ListNeighbours {
  JobRef job;
  GANTRY_FIELDS(FIELD(1, job))
};

// An event is a sentence about the job on one node, with its numbers. Jobs that the asker does not
// see have neither id nor name.
struct NeighbourEvent {
  std::string node;
  std::string text;
  Instant since{};
  std::optional<Instant> ended;
  SharedResource resource = SharedResource::cpu;
  std::string device;
  bool is_victim = false;             // otherwise the job is a cause
  std::optional<SharingCause> cause;  // unset: it is throttled
  std::uint32_t confidence = 0, level = 0, held_up = 0, own = 0;
  GANTRY_FIELDS(FIELD(1, node), FIELD(2, text), FIELD(3, since), FIELD(4, ended),
                FIELD(5, resource), FIELD(6, device), FIELD(7, is_victim), FIELD(8, cause),
                FIELD(9, confidence), FIELD(10, level), FIELD(11, held_up), FIELD(12, own))
};

struct NeighbourRow {  // a job that shares a node with it now
  std::string node;
  std::string job;     // "12_3"; "" = another tenant's, of which no more is told
  std::string tenant;  // "" = not seen, or none
  std::string user;
  GANTRY_FIELDS(FIELD(1, node), FIELD(2, job), FIELD(3, tenant), FIELD(4, user))
};

struct ApartRow {    // jobs from whose nodes the job is kept away if there is another place
  std::string user;  // "" = another tenant's, of which no more is told
  std::string name;
  Instant until{};
  GANTRY_FIELDS(FIELD(1, user), FIELD(2, name), FIELD(3, until))
};

struct NeighbourList {
  std::string job;
  std::vector<NeighbourRow> neighbours;
  std::vector<NeighbourEvent> events;  // the oldest first
  std::vector<ApartRow> apart;
  GANTRY_FIELDS(FIELD(1, job), FIELD(2, neighbours), FIELD(3, events), FIELD(4, apart))
};

}  // namespace gantry::proto
