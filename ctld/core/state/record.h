// Records: the durable form of State's tables, written by the fold and read at start.
//
// A StoredSpec is immutable and written once, with the submit. A JobRecord holds everything else
// that is durable of a job. Replaying the journal from the beginning gives exactly the same
// records.
//
// Facts that State and a record hold in the same form are one struct in both (JobFacts, ArrayFacts,
// Active, NodeRecord, PartitionRecord), so nobody copies them field by field. A record adds only
// what State holds in another form: names instead of numbers, sets of tasks as spans, and values
// that are unset while they equal the spec's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/fields.h"
#include "ctld/core/state/job.h"
#include "ctld/core/state/node.h"
#include "ctld/core/state/stored_spec.h"
#include "ctld/core/state/tenancy_state.h"

namespace gantry::core {

struct ArrayRecord : ArrayFacts {
  std::vector<Span> pending, done_ok, done_bad, corr_met, corr_never;
  GANTRY_FIELDS(FIELD(1, pending), FIELD(2, done_ok), FIELD(3, done_bad), FIELD(4, corr_met),
                FIELD(5, corr_never), FIELD(6, max_running), FIELD(7, never_started),
                FIELD(8, last_history), FIELD(9, worst), FIELD(10, worst_exit),
                FIELD(11, last_split))
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
  // Set for elements, and if a budget lowered the job; unset: as in the spec or in the array.
  std::optional<std::uint32_t> priority_class;
  std::optional<JobShape> shape;     // unset: the spec's
  std::optional<bool> may_requeue;   // unset: the spec's
  std::vector<PartitionId> queues;   // queues among which the job may move; empty: it stays in one
  std::vector<std::string> windows;  // likewise for reservations
  std::optional<JobNotes> notes;
  GANTRY_FIELDS(FIELD(1, array), FIELD(2, ordinal), FIELD(3, phase), FIELD(4, hold),
                FIELD(5, started_once), FIELD(6, outcome), FIELD(7, exit), FIELD(8, name),
                FIELD(9, partition), FIELD(10, time_limit), FIELD(11, nice), FIELD(12, priority),
                FIELD(13, restarts), FIELD(14, launch_failures), FIELD(15, attempt),
                FIELD(16, submitted), FIELD(17, eligible), FIELD(18, not_before),
                FIELD(19, backing_off), FIELD(20, started), FIELD(21, ended), FIELD(22, cause),
                FIELD(23, dependencies), FIELD(24, tasks), FIELD(25, active), FIELD(26, comment),
                FIELD(27, preemptions), FIELD(28, share), FIELD(29, class_priority),
                FIELD(30, account), FIELD(31, reservation), FIELD(32, billed), FIELD(33, credited),
                FIELD(34, priority_class), FIELD(35, lowered), FIELD(36, shape),
                FIELD(37, may_requeue), FIELD(38, window_named), FIELD(39, asked_more),
                FIELD(40, site_factor), FIELD(41, queues), FIELD(42, windows), FIELD(43, notes))
};

// Prefix of the hash of an enrolment token among the keys of the table of nodes' keys; no node has
// such a name.
inline constexpr std::string_view kTokenKey = "token/";

struct TextRecord {  // user_key: hex key -> user; node_key: name -> Z85 key
  std::string text;
  GANTRY_FIELDS(FIELD(1, text))
};

struct DocumentRecord {
  tenancy::Document document;
  GANTRY_FIELDS(FIELD(1, document))
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
  GANTRY_FIELDS(FIELD(1, epoch), FIELD(2, last_job), FIELD(3, last_time), FIELD(4, applied),
                FIELD(5, class_names), FIELD(6, half_life), FIELD(7, kill_wait),
                FIELD(8, start_timeout), FIELD(9, last_trigger))
};

}  // namespace gantry::core
