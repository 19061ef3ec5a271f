// The node daemon as a function: state, input and time go in; actions and messages come out. The
// daemon (noded/daemon.cc) and the simulator run this same code.
//
// In one turn the shell (the code around this class) calls step() for each input that it has, then
// take_turn(). It carries out the turn's actions in their order, and only then sends its messages;
// a RememberEpoch that cannot be made durable ends the process, and no other action does. What an
// action brings about comes back as an event, at once or later. The shell calls step() again no
// later than Turn::wake, with a Wake.
//
// The following holds, whatever is lost, doubled, late or killed:
//   - An attempt runs at most once. Begin and Resume are the only actions that run anything: Begin
//     once per (job, attempt), Resume only for an attempt that the runtime has proved never to have
//     started.
//   - An exit is reported until the controller acknowledged it, and forgotten only then.
//   - A controller older than the newest ever seen is refused, over restarts as well.
// After a restart the runtime lists what the disk and the shims say (Recovered), and a new Core
// starts from that list. The code is deterministic: it has no clock, no I/O and no randomness.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/job/job_spec.h"
#include "common/job/job_state.h"
#include "common/proto/job_network.h"
#include "common/proto/node_order.h"
#include "common/proto/node_relay.h"
#include "common/proto/node_report.h"
#include "common/proto/steps.h"
#include "common/time/time.h"
#include "common/types.h"

namespace gantry::node {

using proto::AttemptKey;

// ---- inputs

using Order =
    std::variant<proto::NodeAccept, proto::RegisterAgain, proto::HeartbeatAck, proto::Launch,
                 proto::Go, proto::Terminate, proto::SignalAttempt, proto::AckExit, proto::FetchLog,
                 proto::TellAttempt, proto::ResumeGpu, proto::Freeze, proto::ProbeAttempt,
                 proto::IdentityTokens, proto::LimitStep>;

struct FromController {
  Order order;
};
struct LinkUp {};  // the transport (re)connected: register
// The transport says that it is down; the core also notices silence without this.
struct LinkDown {};
struct Wake {};  // the time of Turn::wake has come
struct Stop {    // the daemon stops on purpose; its jobs run on
  // Another daemon follows at once. The controller is not told, so that nobody sees the node down.
  bool makes_way = false;
};

// Events of the runtime. An unknown key is ignored.
struct Held {  // the attempt is prepared and waits for Release
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
struct BeginFailed {  // the attempt never ran, and never will
  AttemptKey key;
  std::string message;
};
struct FileRead {
  proto::FetchLogReply reply;
};
struct NetworkProbed {
  proto::AttemptProbed reply;
};
struct TokensDue {  // the attempt's identity tokens end soon
  AttemptKey key;
};
struct GpusChanged {  // sent once after the daemon starts, and again after each change
  GpuInventory gpus;
};
struct NotRemembered {};  // the last RememberJob failed; it is asked for again at a heartbeat

using Input =
    std::variant<FromController, LinkUp, LinkDown, Wake, Stop, Held, Running, Ended, BeginFailed,
                 FileRead, NetworkProbed, TokensDue, GpusChanged, NotRemembered>;

// ---- actions

// The shell makes this durable, even through a power cut, before it carries out the actions after
// it.
struct RememberEpoch {
  Epoch epoch{};
  std::optional<Duration> fence_after;
};
// The job id is made durable as an epoch is, but the daemon goes on without it: NotRemembered
// answers a write that failed.
struct RememberJob {
  JobId highest{};  // the highest job id that was ever ordered here
};
// When the controller was last known to hear this node; the core asks for it only if the cluster
// fences lost nodes. The record must outlive the daemon, but need not outlive the machine. A failed
// write is not answered: a fence that counts from an earlier contact comes too early and never too
// late, and the next contact is written anyway.
struct RememberContact {
  Instant at{};
};
// Write the launch record, then start the attempt's shim. The record must outlive the daemon, not
// the machine: a reboot ends every attempt. With launch.hold the shim prepares the attempt, reports
// Held and waits for Release; otherwise it runs it at once. The answer is Held, Running, Ended or
// BeginFailed.
struct Begin {
  proto::Launch launch;
};
// Starts a recovered attempt from its record on disk. Allowed only for
// Recovered::Stage::never_started; otherwise like Begin.
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
  std::optional<StepId> step{};  // if set, only the processes of this step get the signal
};
struct SetFrozen {  // stops every process where it is, or lets all go on; may be repeated
  AttemptKey key;
  bool frozen = false;
};
// Sends SIGKILL to all of it, or stops its preparation. Ended follows. It may be repeated.
struct Kill {
  AttemptKey key;
};
struct SetStepLimit {  // counts from the beginning of the step; 0 = none
  AttemptKey key;
  StepId step{};
  Duration time_limit{};
};
struct Notice {  // one line for the job's standard error
  AttemptKey key;
  std::string text;
};
struct RepairGpu {  // an administrator says that this GPU works again
  std::string uuid;
};
struct Forget {  // the exit was acknowledged: remove the attempt's directory
  AttemptKey key;
};
struct ProbeNetwork {  // answered by NetworkProbed
  proto::ProbeAttempt probe;
};
struct WriteTokens {  // in the place of the older ones
  proto::IdentityTokens tokens;
};
struct ReadFile {  // answered by FileRead
  proto::FetchLog fetch;
};

using Action = std::variant<RememberEpoch, RememberJob, RememberContact, Begin, Resume, Release,
                            Signal, Kill, Notice, RepairGpu, Forget, ReadFile, SetFrozen,
                            ProbeNetwork, WriteTokens, SetStepLimit>;

// The core leaves load and free memory in a Heartbeat empty; the shell fills them in.
using Report =
    std::variant<proto::NodeRegister, proto::Heartbeat, proto::LaunchReady, proto::Started,
                 proto::ExitReport, proto::Goodbye, proto::FetchLogReply, proto::GpuReport,
                 proto::Frozen, proto::AttemptProbed, proto::RenewIdentity>;

struct Turn {
  std::vector<Action> actions;
  std::vector<Report> messages;
  std::optional<Instant> wake;
};

// ---- start

// The state of one attempt when the daemon starts, as the disk and the shims tell it.
struct Recovered {
  enum class Stage : std::uint8_t {
    // The record exists, and it is proved that nothing ran; nothing will without Resume.
    never_started,
    preparing,  // its shim is alive and has not reported anything yet
    held,
    running,
    ended,  // its exit record exists; or its shim is gone, and all its processes were killed
  };
  AttemptKey key;
  Stage stage = Stage::never_started;
  std::optional<Instant> started;
  Exit exit;            // stage ended
  bool frozen = false;  // stage running
};

// The facts that the daemon read from the state directory; every field is unset at the first start.
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
  std::uint64_t no_effect = 0;  // an input for which the table in stage.h has no move
};

class Core {
 public:
  // `facts` is a NodeRegister without attempts, epoch and time. It stays as it is, except for the
  // GPUs, for the life of the daemon.
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
