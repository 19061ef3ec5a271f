// The node daemon as a function: (state, input, now) in, (actions, messages) out.
//
// One turn: the shell calls step() for each input it has, then take_turn(). It carries out the
// turn's actions in their order, and only then sends its messages; a RememberEpoch that cannot be
// made durable ends the process, and no other one does. What an action brings about comes back as
// an event, at once or later. The shell calls step() again no later than Turn::wake, with a Wake.
//
// What holds, whatever is lost, doubled, late or killed:
//   - An attempt runs at most once. Begin and Resume are the only actions that run anything: Begin
//     once per (job, attempt), Resume only for one that the runtime has proved never to have
//     started.
//   - An exit is reported until the controller acknowledged it, and forgotten only then.
//   - A controller older than the newest ever seen is refused, over restarts as well.
// Restart: the runtime lists what its disk and its shims say (Recovered); a new Core starts from
// that. Deterministic: no clock, no I/O, no randomness.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/job/job_spec.h"
#include "common/job/job_state.h"
#include "common/proto/node_order.h"
#include "common/proto/node_relay.h"
#include "common/proto/node_report.h"
#include "common/time/time.h"
#include "common/types.h"

namespace gantry::node {

using proto::AttemptKey;

// ---- inputs

using Order =
    std::variant<proto::NodeAccept, proto::RegisterAgain, proto::HeartbeatAck, proto::Launch,
                 proto::Go, proto::Terminate, proto::SignalAttempt, proto::AckExit, proto::FetchLog,
                 proto::TellAttempt, proto::ResumeGpu, proto::Freeze>;

struct FromController {
  Order order;
};
struct LinkUp {};    // the transport (re)connected: register
struct LinkDown {};  // it is known to be down; silence is noticed without it
struct Wake {};      // a time that was asked for has come
struct Stop {};      // the daemon stops on purpose; its jobs run on

// Events of the runtime. An unknown key is ignored.
struct Held {  // prepared; runs after Release
  AttemptKey key;
};
struct Running {
  AttemptKey key;
  Instant at{};
};
struct Exit {  // how an attempt ended, from its exit record
  proto::ExitCause cause = proto::ExitCause::exited;
  ExitStatus status;
  std::string message;
  Usage usage;
  std::optional<Instant> started;
  Instant ended{};
  std::optional<Duration> ran{};  // as proto::ExitReport has it
};
struct Ended {  // nothing of it runs any more, its cgroup is gone, epilog done
  AttemptKey key;
  Exit exit;
};
struct BeginFailed {  // nothing of it ran, and nothing will
  AttemptKey key;
  std::string message;
};
struct FileRead {
  proto::FetchLogReply reply;
};
struct GpusChanged {  // since the daemon started, or since the last one
  GpuInventory gpus;
};
struct NotRemembered {};  // the last RememberJob: asked for again with the next heartbeat

using Input = std::variant<FromController, LinkUp, LinkDown, Wake, Stop, Held, Running, Ended,
                           BeginFailed, FileRead, GpusChanged, NotRemembered>;

// ---- actions

// Durable through a power cut before anything after it in the turn.
struct RememberEpoch {
  Epoch epoch{};
  std::optional<Duration> fence_after;
};
// Durable like an epoch, but the daemon goes on without it: NotRemembered answers a failed write.
struct RememberJob {
  JobId highest{};  // that was ever ordered here
};
// When the controller was last known to hear this node; only asked for under fencing. Must outlive
// the daemon, not the machine. A failed write is not answered: a fence that counts from an earlier
// contact comes too early and never too late, and the next contact is written anyway.
struct RememberContact {
  Instant at{};
};
// Write the launch record, then start the attempt's shim. The record must outlive the daemon, not
// the machine: a reboot ends every attempt. With launch.hold it prepares, says Held and waits for
// Release; else it runs. Answered by Held, Running, Ended or BeginFailed.
struct Begin {
  proto::Launch launch;
};
// As Begin, from the record on disk; only for Recovered::Stage::never_started.
struct Resume {
  AttemptKey key;
};
struct Release {  // a held attempt may run now
  AttemptKey key;
};
struct Signal {
  AttemptKey key;
  std::int32_t signal = 0;
  proto::SignalScope scope = proto::SignalScope::full;
  std::optional<StepId> step{};  // set: its processes only
};
struct SetFrozen {  // stop all of it where it is, or let it go on; may be repeated
  AttemptKey key;
  bool frozen = false;
};
struct Kill {  // SIGKILL to all of it, or give up preparing it; Ended follows. May be repeated
  AttemptKey key;
};
struct Notice {  // one line for the job's standard error
  AttemptKey key;
  std::string text;
};
struct RepairGpu {  // an administrator says that it is well
  std::string uuid;
};
struct Forget {  // acknowledged: remove its directory
  AttemptKey key;
};
struct ReadFile {  // answered by FileRead
  proto::FetchLog fetch;
};

using Action = std::variant<RememberEpoch, RememberJob, RememberContact, Begin, Resume, Release,
                            Signal, Kill, Notice, RepairGpu, Forget, ReadFile, SetFrozen>;

// Heartbeat leaves the core without load and free memory; the shell fills them in.
using Report = std::variant<proto::NodeRegister, proto::Heartbeat, proto::LaunchReady,
                            proto::Started, proto::ExitReport, proto::Goodbye, proto::FetchLogReply,
                            proto::GpuReport, proto::Frozen>;

struct Turn {
  std::vector<Action> actions;
  std::vector<Report> messages;
  std::optional<Instant> wake;
};

// ---- start

// What disk and shims say of one attempt when the daemon starts.
struct Recovered {
  enum class Stage : std::uint8_t {
    never_started,  // recorded; proved that nothing ran, and nothing will without Resume
    preparing,      // its shim is alive and has not said more
    held,
    running,
    ended,  // has its exit record; or its shim is gone, and all of it was killed
  };
  AttemptKey key;
  Stage stage = Stage::never_started;
  std::optional<Instant> started;
  Exit exit;            // stage ended
  bool frozen = false;  // stage running
};

// From the state directory; all unset on the first start.
struct Memory {
  Epoch epoch{};
  JobId highest_job{};
  std::optional<Duration> fence_after;
  std::optional<Instant> last_contact;
};

// Counters for status and tests: input that was refused or had no effect.
struct Counters {
  std::uint64_t old_epoch = 0;
  std::uint64_t other_session = 0;
  std::uint64_t old_seq = 0;
  std::uint64_t no_effect = 0;  // a move that the table does not have
};

class Core {
 public:
  // `facts`: NodeRegister without attempts, epoch and time; they stay for the life of the daemon.
  Core(proto::NodeRegister facts, Memory memory, std::vector<Recovered> recovered, Instant now);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  void step(Instant now, Input input);
  Turn take_turn();

  [[nodiscard]] bool registered() const;
  [[nodiscard]] std::vector<proto::AttemptStatus> attempts() const;  // in key order
  [[nodiscard]] const Counters& counters() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gantry::node
