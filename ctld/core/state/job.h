// Job: what the controller knows of one job, of one array element that is a job of its own, or of
// an array. The record of an array stands for all tasks that have not been split off, and stays
// until every task has ended. A Job is small, because a million may wait: members that only launch
// and `show` need stay encoded in `spec`, and parts that most jobs lack are behind pointers. A Job
// is durable (record.h) apart from the marked members. Only apply() changes it. job_marks.h has
// what the scheduler and others were told of it.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/job/job_spec.h"
#include "common/job/job_state.h"
#include "common/proto/node_report.h"
#include "common/proto/tenant_events.h"
#include "ctld/core/state/bill.h"
#include "ctld/core/state/dependency_state.h"
#include "ctld/core/state/finish.h"
#include "ctld/core/state/job_notes.h"
#include "ctld/core/state/names.h"
#include "ctld/core/state/ordinal_set.h"
#include "ctld/core/state/owned.h"
#include "ctld/core/state/step_state.h"
#include "ctld/core/state/use_of_job.h"
#include "ctld/sched/grant.h"

namespace gantry::core {

using ClassId = Id<struct ClassTag, std::uint32_t>;  // index into ClassTable

// Facts of an array that its state and its record (record.h) share.
struct ArrayFacts {
  std::optional<std::uint32_t> max_running;
  std::uint32_t never_started = 0;     // tasks that have neither started nor ended
  Instant last_history{};              // of cancelled tasks' rows; no two rows have the same time
  Outcome worst = Outcome::completed;  // worst outcome of the tasks that ended
  ExitStatus worst_exit;
  JobId last_split{};  // the element that was split off last, when no task was left; 0 = none yet
};

// An array's tasks. A task is pending, or it is an element (a job of its own), or it is done. A
// task that was cancelled while it was pending is in done_bad.
struct ArrayState : ArrayFacts {
  ArrayIndexes indexes;  // from the spec
  OrdinalSet pending;
  OrdinalSet done_ok;
  OrdinalSet done_bad;
  OrdinalSet corr_met,
      corr_never;  // for aftercorr: tasks whose counterpart met the dependency, or never will
  // The other members are derived from the elements' records.
  std::map<std::uint32_t, JobId> elements;  // known elements by ordinal
  std::uint32_t active = 0;                 // tasks that are starting, running or finishing
  std::uint32_t unended = 0;                // elements that have not ended
  std::set<JobId> queued;                   // elements that are queued again by themselves

  void note_end(Outcome outcome, ExitStatus exit) {
    const auto rank = [](Outcome o, ExitStatus e) {
      return e.signal != 0             ? 128 + e.signal
             : e.code != 0             ? e.code + 1
             : o == Outcome::completed ? 0
                                       : 1;
    };
    if (rank(outcome, exit) <= rank(worst, worst_exit)) return;
    worst = outcome;
    worst_exit = exit;
  }
  // True when every task has ended.
  [[nodiscard]] bool complete() const { return pending.empty() && unended == 0; }
};

// Progress of one node with its part of an attempt.
enum class RunState : std::uint8_t {
  launched = 1,  // ordered, not confirmed
  ready = 2,     // prepared, held until the job starts
  running = 3,
  released = 4,  // nothing of the attempt is left on the node
};
constexpr auto enum_names(RunState) {
  using enum RunState;
  return std::array<std::pair<RunState, std::string_view>, 4>{
      {{launched, "launched"}, {ready, "ready"}, {running, "running"}, {released, "released"}}};
}

struct NodeRun {
  sched::NodeGrant grant;
  RunState state = RunState::launched;
  proto::ExitCause cause = proto::ExitCause::exited;  // valid once released
  ExitStatus exit;
  std::string message;
  std::vector<HeldPart> held;  // its part of the bill
  bool frozen = false;         // true if the node last reported it as frozen
  // The order was sent before an old store was accepted, and the store does not know whether the
  // node carried it out. The job may have ended since, so the order is not sent again.
  bool perhaps_over = false;
  std::optional<Instant> ended{};  // once released: when the node released it
  // Since when the job is releasing this node: its part there is ending, and no step begins there.
  std::optional<Instant> given_back{};
  GANTRY_FIELDS(FIELD(1, grant), FIELD(2, state), FIELD(3, cause), FIELD(4, exit),
                FIELD(5, message), FIELD(6, held), FIELD(7, frozen), FIELD(8, perhaps_over),
                FIELD(9, ended), FIELD(10, given_back))
};

// The newest attempt of a placed job. It is kept after the end for `show`, and is stored in this
// form.
struct Active {
  Instant placed{};
  bool exclusive = false;
  bool warned = false;                // the warning signal was sent
  proto::IdleGpuStep idle_told{};     // the last step taken about its idle GPUs
  double charge = 0;                  // charge to the fair share, per second
  std::optional<Instant> checkpoint;  // newest checkpoint of this attempt
  std::vector<NodeRun> nodes;         // rank order; the first is the batch node
  std::optional<Finish> finish;
  Usage usage;                   // sums over this attempt's nodes, and the highest peak of a node
  std::vector<StepState> steps;  // the newest kMaxStepsKept steps
  StepId next_step{};
  std::vector<WaitPart> waits;  // causes of waiting before this attempt
  Bill bill;
  std::optional<Instant> suspended;  // suspended since then; only while the job is running
  Duration suspended_before{};       // total of ended suspensions
  UseOfJob use;
  std::vector<SecretUse> secrets;  // secrets that this attempt gets, with their versions and files
  std::uint32_t door = 0;          // of a replica: the port of its node where gates reach it
  [[nodiscard]] Duration suspended_until(Instant now) const {
    return suspended_before + (suspended ? std::max(Duration{}, now - *suspended) : Duration{});
  }
  [[nodiscard]] bool all_released() const {
    for (const NodeRun& run : nodes)
      if (run.state != RunState::released) return false;
    return true;
  }
  GANTRY_FIELDS(FIELD(1, placed), FIELD(2, exclusive), FIELD(3, warned), FIELD(4, nodes),
                FIELD(5, finish), FIELD(6, usage), FIELD(7, steps), FIELD(8, next_step),
                FIELD(9, charge), FIELD(10, checkpoint), FIELD(11, waits), FIELD(12, bill),
                FIELD(13, idle_told), FIELD(14, suspended), FIELD(15, suspended_before),
                FIELD(16, use), FIELD(17, secrets), FIELD(18, door))
};

// Facts of a job that its state and its record (record.h) share.
struct JobFacts {
  JobId array{};           // an element's array
  Instant window_named{};  // when an update set its reservation; zero: the submit set it
  // When an update last made the job ask for more, or moved it to another queue; zero: never. The
  // age at which a job goes before all others of its class counts from here.
  Instant asked_more{};
  Instant submitted{};
  Instant eligible{};                 // its place in the queue's order counts from here
  std::optional<Instant> not_before;  // begin time, dependency delay or back-off
  std::optional<Instant> started, ended;
  Money billed, credited;  // sums over settled attempts
  std::string cause;       // why the job ended, is held, or was last requeued

  std::optional<std::uint32_t> priority;
  std::int32_t nice = 0;
  std::int32_t site_factor = 0;  // set by an administrator; added to the priority
  std::int32_t class_priority =
      0;  // value of the tenant's own priority class that the job names; 0 = none
  std::optional<sched::ShareId>
      share;                  // the leaf of its user in the share tree, in a tenant's queue
  std::uint32_t ordinal = 0;  // an element's place in its array
  std::uint32_t restarts = 0;
  std::uint32_t launch_failures = 0;
  std::uint32_t preemptions = 0;
  Attempt attempt{};  // number of the newest start; 0 = none yet
  ExitStatus exit;
  std::optional<Outcome> outcome;  // set once the job has ended
  Phase phase = Phase::queued;
  Hold hold = Hold::none;
  bool started_once = false;  // at least one attempt has run
  bool backing_off = false;   // true if not_before is a back-off
  bool lowered = false;       // a budget lowered the job: its class differs from the spec's
};

// Counts the nodes of an attempt that the job has not released.
inline std::uint32_t kept_nodes(const Active& active) {
  std::uint32_t n = 0;
  for (const NodeRun& run : active.nodes) n += run.given_back ? 0 : 1;
  return n;
}

struct Job : JobFacts {
  JobKind kind = JobKind::batch;
  bool may_requeue = true;
  bool no_kill = false;      // the job continues if a node is lost
  bool has_image = false;    // a container image, which may have to be fetched
  bool renamed = false;      // the spec still has the old name
  bool respecified = false;  // account or reservation differ from the spec
  bool reshaped = false;     // shape or may_requeue differ from the spec
  bool fold_due = false;     // set if State's Unfolded lists it; not durable

  JobId id{};
  std::uint32_t task = 0;  // index of an array's element
  NameId name, user, account;
  Uid uid{};
  ClassId cls{};  // partition, shape and time limit
  std::optional<Instant> deadline;
  std::optional<WarnSignal> warn;
  Bytes spec;                  // encoded StoredSpec; empty for an element, which uses its array's
  Owned<std::string> comment;  // replaces the spec's comment
  Owned<std::vector<PartitionId>>
      queues;  // the queues that the job named, if several; see turn/queue_choice.h
  Owned<std::vector<std::string>> windows;  // likewise for reservations
  Owned<JobNotes> notes;
  Owned<Dependencies> dependencies;
  Owned<ArrayState> tasks;  // only for an array
  Owned<Active> active;

  [[nodiscard]] bool is_array() const { return tasks != nullptr; }
  [[nodiscard]] bool is_element() const { return array != JobId{}; }
  [[nodiscard]] bool placed() const {
    return phase == Phase::starting || phase == Phase::running || phase == Phase::finishing;
  }
};

// The phase that listings show.
inline Phase shown_phase(const Job& job) {
  return job.active && job.active->suspended ? Phase::suspended : job.phase;
}

// A job with a container image may have to fetch it, so its start may take this many times
// start_timeout.
inline constexpr std::int64_t kImageStarts = 10;
inline constexpr std::size_t kMaxStepsKept =
    1024;  // steps kept per attempt; older ones are dropped

}  // namespace gantry::core
