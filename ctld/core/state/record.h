// Records: the durable form of State's tables, written by the fold and read at start.
//
// A StoredSpec is immutable and written once, with the submit. A JobRecord holds everything else
// that is durable of a job. Replaying the journal from the beginning gives exactly the same
// records.
//
// Facts that State and a record hold in the same form are one struct in both (JobFacts, ArrayFacts,
// Active, NodeRecord, PartitionRecord), so nobody copies them field by field. A record adds only
// what State holds in another form: names instead of numbers, sets of tasks as spans, and values
// that are unset as long as they are the spec's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ctld/core/state/job.h"
#include "ctld/core/state/node.h"
#include "ctld/core/state/stored_spec.h"
#include "ctld/core/state/tenancy_state.h"

namespace gantry::core {

struct ArrayRecord : ArrayFacts {
  std::vector<Span> pending, done_ok, done_bad, corr_met, corr_never;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "pending", s.pending);
    v(2, "done_ok", s.done_ok);
    v(3, "done_bad", s.done_bad);
    v(4, "corr_met", s.corr_met);
    v(5, "corr_never", s.corr_never);
    v(6, "max_running", s.max_running);
    v(7, "never_started", s.never_started);
    v(8, "last_history", s.last_history);
    v(9, "worst", s.worst);
    v(10, "worst_exit", s.worst_exit);
    v(11, "last_split", s.last_split);
  }
};

// Name, account, reservation, nice, priority and the time limit are in the spec too, but may be
// updated; here are the present values.
struct JobRecord : JobFacts {
  std::optional<std::string> name;  // unset: the spec's
  PartitionId partition{};
  std::optional<Duration> time_limit;
  std::vector<DependencyStatus> dependencies;
  std::optional<ArrayRecord> tasks;
  std::optional<Active> active;
  std::optional<std::string> comment;      // unset: the spec's
  std::optional<std::string> account;      // unset: the spec's
  std::optional<std::string> reservation;  // unset: the spec's
  // Set for elements, and where a budget lowered it; unset: as in the spec or in the array.
  std::optional<std::uint32_t> priority_class;
  std::optional<JobShape> shape;     // unset: the spec's
  std::optional<bool> may_requeue;   // unset: the spec's
  std::vector<PartitionId> queues;   // those between which it may move; empty: it stays in one
  std::vector<std::string> windows;  // likewise of reservations
  std::optional<JobNotes> notes;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "array", s.array);
    v(2, "ordinal", s.ordinal);
    v(3, "phase", s.phase);
    v(4, "hold", s.hold);
    v(5, "started_once", s.started_once);
    v(6, "outcome", s.outcome);
    v(7, "exit", s.exit);
    v(8, "name", s.name);
    v(9, "partition", s.partition);
    v(10, "time_limit", s.time_limit);
    v(11, "nice", s.nice);
    v(12, "priority", s.priority);
    v(13, "restarts", s.restarts);
    v(14, "launch_failures", s.launch_failures);
    v(15, "attempt", s.attempt);
    v(16, "submitted", s.submitted);
    v(17, "eligible", s.eligible);
    v(18, "not_before", s.not_before);
    v(19, "backing_off", s.backing_off);
    v(20, "started", s.started);
    v(21, "ended", s.ended);
    v(22, "cause", s.cause);
    v(23, "dependencies", s.dependencies);
    v(24, "tasks", s.tasks);
    v(25, "active", s.active);
    v(26, "comment", s.comment);
    v(27, "preemptions", s.preemptions);
    v(28, "share", s.share);
    v(29, "class_priority", s.class_priority);
    v(30, "account", s.account);
    v(31, "reservation", s.reservation);
    v(32, "billed", s.billed);
    v(33, "credited", s.credited);
    v(34, "priority_class", s.priority_class);
    v(35, "lowered", s.lowered);
    v(36, "shape", s.shape);
    v(37, "may_requeue", s.may_requeue);
    v(38, "window_named", s.window_named);
    v(39, "asked_more", s.asked_more);
    v(40, "site_factor", s.site_factor);
    v(41, "queues", s.queues);
    v(42, "windows", s.windows);
    v(43, "notes", s.notes);
  }
};

// In the table of nodes' keys, before the hash of a token that enrolls a node; no node has such a
// name.
inline constexpr std::string_view kTokenKey = "token/";

struct TextRecord {  // user_key: hex key -> user; node_key: name -> Z85 key
  std::string text;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "text", s.text);
  }
};

struct DocumentRecord {
  tenancy::Document document;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "document", s.document);
  }
};

struct MetaRecord {
  Epoch epoch{};
  JobId last_job{};
  Instant last_time{};
  EventSeq applied{};  // all records include this event and none after it
  std::vector<std::string> class_names;
  Duration half_life = hours(7 * 24);
  Duration kill_wait = seconds(30);
  Duration start_timeout = seconds(60);
  TriggerId last_trigger{};
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "epoch", s.epoch);
    v(2, "last_job", s.last_job);
    v(3, "last_time", s.last_time);
    v(4, "applied", s.applied);
    v(5, "class_names", s.class_names);
    v(6, "half_life", s.half_life);
    v(7, "kill_wait", s.kill_wait);
    v(8, "start_timeout", s.start_timeout);
    v(9, "last_trigger", s.last_trigger);
  }
};

}  // namespace gantry::core
