// Advance reservations and maintenance windows: nodes set aside for a time. Client to ctld.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/special_members.h"
#include "common/time/recurrence.h"
#include "common/time/time.h"

namespace gantry::proto {

// Which nodes of a reservation by number are replaced by free ones: none, those out of service, or
// also those in use by jobs, so that some are always free.
enum class NodeReplacement : std::uint8_t { none = 0, down = 1, used = 2 };
GANTRY_NAMES(NodeReplacement, {none, "none"}, {down, "down"}, {used, "used"})

// Makes a reservation, or puts another in its place; for operators. Answered by
// ListReservationsReply with the new reservation.
struct MakeReservation {
  std::string name;                // "" = the controller gives one
  std::vector<std::string> nodes;  // either these nodes,
  std::uint32_t count =
      0;                   // or this number of nodes, chosen among those that are free in that time
  std::string partition;   // with `count`: nodes of this queue; "" = any
  std::string constraint;  // with `count`: nodes with these features; "" = any
  std::optional<Instant> start;    // unset = now
  std::optional<Instant> end;      // either the end,
  std::optional<Duration> length;  // or the length
  bool maintenance = false;        // for maintenance: no job may name it
  bool ignore_jobs = false;        // allowed even if jobs may still run there when it begins
  std::vector<std::string> tenants, users;  // tenants and users who may name it
  std::string comment;
  // Changes an existing reservation; every value replaces the old one. If it has begun, its start
  // stays.
  bool replaces = false;
  Recurrence every = Recurrence::once;  // it recurs, at the same local time
  std::string zone;                     // the rule of local time (TimeZone); "" = UTC
  NodeReplacement replacement = NodeReplacement::none;  // not allowed with nodes by name, unless it
                                                        // `replaces` a reservation that has it
  std::optional<Duration>
      purge_after;    // it ends when no job has named it for this long; above zero
  bool skip = false;  // with `replaces`, for a recurring one: skip to its next occurrence
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, nodes), FIELD(3, count), FIELD(4, partition),
                FIELD(5, constraint), FIELD(6, start), FIELD(7, end), FIELD(8, length),
                FIELD(9, maintenance), FIELD(10, ignore_jobs), FIELD(11, tenants), FIELD(12, users),
                FIELD(13, comment), FIELD(14, replaces), FIELD(15, every), FIELD(16, zone),
                FIELD(17, replacement), FIELD(18, purge_after), FIELD(19, skip))
};

struct RemoveReservation {  // operators; answered by Ok
  std::string name;
  GANTRY_FIELDS(FIELD(1, name))
};

struct ReservationRow {
  GANTRY_SPECIAL_MEMBERS(ReservationRow)
  std::string name;
  std::string node_list;
  std::uint32_t nodes = 0;
  Instant start{}, end{};
  bool maintenance = false;
  bool active = false;  // the present time is within it
  std::vector<std::string> tenants, users;
  std::string by;  // who made it
  std::string comment;
  std::uint64_t queued = 0, running = 0;  // jobs that name it
  Recurrence every = Recurrence::once;
  std::string zone;  // as in MakeReservation
  NodeReplacement replacement = NodeReplacement::none;
  std::optional<Duration> purge_after;
  std::string partition, constraint;  // from which nodes by number are chosen
  bool by_count = false;              // its nodes were chosen by their number
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, node_list), FIELD(3, nodes), FIELD(4, start),
                FIELD(5, end), FIELD(6, maintenance), FIELD(7, active), FIELD(8, tenants),
                FIELD(9, users), FIELD(10, by), FIELD(11, comment), FIELD(12, queued),
                FIELD(13, running), FIELD(14, every), FIELD(15, zone), FIELD(16, replacement),
                FIELD(17, purge_after), FIELD(18, partition), FIELD(19, constraint),
                FIELD(20, by_count))
};

struct ListReservations {
  std::vector<std::string> names;  // empty = all
  GANTRY_FIELDS(FIELD(1, names))
};

struct ListReservationsReply {
  std::vector<ReservationRow> reservations;  // by start, then name
  std::vector<std::string> warnings;         // about a reservation that was made
  Instant now{};
  GANTRY_FIELDS(FIELD(1, reservations), FIELD(2, warnings), FIELD(3, now))
};

}  // namespace gantry::proto
