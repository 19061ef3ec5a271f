// Advance reservations and maintenance windows: nodes set aside for a time. Client to ctld.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/time/recurrence.h"
#include "common/time/time.h"

namespace gantry::proto {

// Which nodes of a reservation by number are replaced by others that are free: none, those that are
// out of service, or also those that jobs use, so that there are always free ones.
enum class NodeReplacement : std::uint8_t { none = 0, down = 1, used = 2 };
constexpr auto enum_names(NodeReplacement) {
  using enum NodeReplacement;
  return std::array<std::pair<NodeReplacement, std::string_view>, 3>{
      {{none, "none"}, {down, "down"}, {used, "used"}}};
}

// Makes a reservation, or puts another in its place; for operators. Answered by
// ListReservationsReply with the new reservation.
struct MakeReservation {
  std::string name;                // "" = the controller gives one
  std::vector<std::string> nodes;  // either these nodes,
  std::uint32_t count = 0;         // or this number of nodes, chosen among those that are free then
  std::string partition;           // with `count`: nodes of this queue; "" = any
  std::string constraint;          // with `count`: nodes with these features; "" = any
  std::optional<Instant> start;    // unset = now
  std::optional<Instant> end;      // either the end,
  std::optional<Duration> length;  // or the length
  bool maintenance = false;        // for nobody: no job may name it
  bool ignore_jobs = false;        // allowed even if jobs may still run there when it begins
  std::vector<std::string> tenants, users;  // who may name it
  std::string comment;
  // There is one of this name, and this is what it becomes; all that is said is said anew. If it
  // has begun, its start stays.
  bool replaces = false;
  Recurrence every = Recurrence::once;  // it comes again, at the same local time
  std::string zone;                     // the rule of local time (TimeZone); "" = UTC
  NodeReplacement replacement = NodeReplacement::none;  // not with nodes by name, unless it
                                                        // `replaces` one that has it
  std::optional<Duration> purge_after;  // it ends when no job has named it for so long; above zero
  bool skip = false;  // with `replaces`, of one that comes again: its next occurrence instead
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "name", s.name);
    v(2, "nodes", s.nodes);
    v(3, "count", s.count);
    v(4, "partition", s.partition);
    v(5, "constraint", s.constraint);
    v(6, "start", s.start);
    v(7, "end", s.end);
    v(8, "length", s.length);
    v(9, "maintenance", s.maintenance);
    v(10, "ignore_jobs", s.ignore_jobs);
    v(11, "tenants", s.tenants);
    v(12, "users", s.users);
    v(13, "comment", s.comment);
    v(14, "replaces", s.replaces);
    v(15, "every", s.every);
    v(16, "zone", s.zone);
    v(17, "replacement", s.replacement);
    v(18, "purge_after", s.purge_after);
    v(19, "skip", s.skip);
  }
};

struct RemoveReservation {  // operators; answered by Ok
  std::string name;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "name", s.name);
  }
};

struct ReservationRow {
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
  std::string partition, constraint;  // from which its nodes by number are chosen
  bool by_count = false;              // its nodes were chosen by their number
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "name", s.name);
    v(2, "node_list", s.node_list);
    v(3, "nodes", s.nodes);
    v(4, "start", s.start);
    v(5, "end", s.end);
    v(6, "maintenance", s.maintenance);
    v(7, "active", s.active);
    v(8, "tenants", s.tenants);
    v(9, "users", s.users);
    v(10, "by", s.by);
    v(11, "comment", s.comment);
    v(12, "queued", s.queued);
    v(13, "running", s.running);
    v(14, "every", s.every);
    v(15, "zone", s.zone);
    v(16, "replacement", s.replacement);
    v(17, "purge_after", s.purge_after);
    v(18, "partition", s.partition);
    v(19, "constraint", s.constraint);
    v(20, "by_count", s.by_count);
  }
};

struct ListReservations {
  std::vector<std::string> names;  // none = all
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "names", s.names);
  }
};

struct ListReservationsReply {
  std::vector<ReservationRow> reservations;  // by start, then name
  std::vector<std::string> warnings;         // about a reservation that was made
  Instant now{};
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "reservations", s.reservations);
    v(2, "warnings", s.warnings);
    v(3, "now", s.now);
  }
};

}  // namespace gantry::proto
