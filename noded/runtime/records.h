// The records that a shim leaves on disk, and its messages to noded: how an attempt or a step
// ended, and which processes run.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/job/job_state.h"
#include "common/proto/node_report.h"

namespace gantry::runtime {

using proto::AttemptKey;
using proto::ExitCause;

// How an attempt ended, or a step of it on this node. Written durably, once.
struct ExitRecord {
  AttemptKey key;
  ExitCause cause = ExitCause::exited;
  ExitStatus exit;
  std::string message;  // for people, with the node's name; "" when the job simply exited
  Usage usage;
  std::uint32_t oom_kills = 0;
  std::optional<Instant> started;
  Instant ended{};
  std::vector<ExitStatus> tasks;  // steps: one per task
  bool unheard = false;           // steps: their starter is gone, and will not report the end
  // The time from start to end without the time that the machine slept, by a clock that nobody can
  // set.
  std::optional<Duration> ran{};
  bool timed_out = false;  // steps: their own time limit ended them
  GANTRY_FIELDS(FIELD(1, key), FIELD(2, cause), FIELD(3, exit), FIELD(4, message), FIELD(5, usage),
                FIELD(6, oom_kills), FIELD(7, started), FIELD(8, ended), FIELD(9, tasks),
                FIELD(10, unheard), FIELD(11, ran), FIELD(12, timed_out))
};

// The processes of a running container. The record is in the job's directory as running.msgpack.
struct RunningRecord {
  std::int32_t init_pid = 0;     // PID 1 of the container (process runtime: the script itself)
  std::uint64_t init_start = 0;  // its start time, field 22 of /proc/PID/stat
  std::int32_t child_pid = 0;    // batch shell; 0 = none yet
  bool held = false;             // it waits for go()
  Instant started{};
  // How long the machine had been awake and asleep at that time, since it booted. Unset if an
  // earlier release wrote the record.
  std::optional<Duration> awake{}, asleep{};
  // True if init_pid is not a process of the container but the runtime of a sandbox with its own
  // kernel. Signals must not be sent to processes that the node sees: the shim passes them on.
  bool own_kernel = false;
  GANTRY_FIELDS(FIELD(1, init_pid), FIELD(2, init_start), FIELD(3, child_pid), FIELD(4, held),
                FIELD(5, started), FIELD(6, awake), FIELD(7, asleep), FIELD(12, own_kernel))
};

// A datagram from a shim to noded that means "check". A lost one does no harm: noded also checks at
// intervals.
enum class NoteKind : std::uint8_t { held = 1, running = 2, exited = 3 };
constexpr auto enum_names(NoteKind) {
  return std::array<std::pair<NoteKind, std::string_view>, 3>{
      {{NoteKind::held, "held"}, {NoteKind::running, "running"}, {NoteKind::exited, "exited"}}};
}

struct ShimNote {
  AttemptKey key;
  std::optional<StepId> step;
  NoteKind kind = NoteKind::running;
  GANTRY_FIELDS(FIELD(1, key), FIELD(2, step), FIELD(3, kind))
};

// A request to watch a step that runs here. The file is in the step's directory until the step's
// shim has taken it; noded sends kAttachSignal to the shim.
struct StepAttachment {
  AttemptKey key;
  StepId step{};
  std::string io_address;  // as in StepRequest
  Bytes io_key;
  Bytes io_ticket;
  bool may_type = false;
  GANTRY_FIELDS(FIELD(1, key), FIELD(2, step), FIELD(3, io_address), FIELD(4, io_key),
                FIELD(5, io_ticket), FIELD(6, may_type))
};

}  // namespace gantry::runtime
