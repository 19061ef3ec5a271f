// Orders and inputs go into the node's core; actions and reports come out of it. core.h describes
// how they are used.
#pragma once

#include <optional>
#include <string>
#include <variant>

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

// The four variants of this file are types of their own, whose copying, moving and destroying are
// compiled once (core.cc) and not in each file that has an order or a report.

// ---- inputs

struct Order
    : std::variant<proto::NodeAccept, proto::RegisterAgain, proto::HeartbeatAck, proto::Launch,
                   proto::Go, proto::Terminate, proto::SignalAttempt, proto::AckExit,
                   proto::FetchLog, proto::TellAttempt, proto::ResumeGpu, proto::Freeze,
                   proto::ProbeAttempt, proto::IdentityTokens, proto::LimitStep> {
  using variant::variant;
  Order();
  Order(variant order);  // the controller's core has the same variant, for the simulator
  Order(const Order&);
  Order(Order&&) noexcept;
  Order& operator=(const Order&);
  Order& operator=(Order&&) noexcept;
  ~Order();
};

struct FromController {
  Order order;
};
struct LinkUp {};  // the transport (re)connected, so the node has to register
// The transport reports a lost connection; the core also notices silence without this.
struct LinkDown {};
struct Wake {};  // the time of Turn::wake has come
struct Stop {    // the daemon stops on purpose; its jobs continue
  // Another daemon starts at once. The controller is not told, so that the node is not shown as
  // down.
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
  std::optional<Duration> ran{};  // as in proto::ExitReport
};
struct Ended {  // nothing of the attempt runs any more, its cgroup is gone, the epilog has ended
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
struct NotRemembered {};  // the last RememberJob failed; a heartbeat will issue it again

struct Input
    : std::variant<FromController, LinkUp, LinkDown, Wake, Stop, Held, Running, Ended, BeginFailed,
                   FileRead, NetworkProbed, TokensDue, GpusChanged, NotRemembered> {
  using variant::variant;
  Input();
  Input(const Input&);
  Input(Input&&) noexcept;
  Input& operator=(const Input&);
  Input& operator=(Input&&) noexcept;
  ~Input();
};

// ---- actions

// The shell makes this durable, even against a power failure, before it carries out the actions
// after it.
struct RememberEpoch {
  Epoch epoch{};
  std::optional<Duration> fence_after;
};
// The job id is made durable like an epoch, but the daemon continues without that: NotRemembered
// reports a write that failed.
struct RememberJob {
  JobId highest{};  // the highest job id that was ever ordered here
};
// When the controller is known to have last received a message of this node; used only if the
// cluster fences lost nodes. The record must survive the daemon, but not a reboot. A failed write
// is not reported: a fence that counts from an earlier contact comes too early and never too late,
// and the next contact is written anyway.
struct RememberContact {
  Instant at{};
};
// Write the launch record, then start the attempt's shim. The record must survive the daemon but
// not a reboot, which ends every attempt. With launch.hold the shim prepares the attempt, reports
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
struct SetFrozen {  // stops every process where it is, or continues all; may be repeated
  AttemptKey key;
  bool frozen = false;
};
// Sends SIGKILL to all processes of the attempt, or stops its preparation. Ended follows. It may be
// repeated.
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
struct RepairGpu {  // an administrator has declared that this GPU works again
  std::string uuid;
};
struct Forget {  // the exit was acknowledged: remove the attempt's directory
  AttemptKey key;
};
struct ProbeNetwork {  // answered by NetworkProbed
  proto::ProbeAttempt probe;
};
struct WriteTokens {  // replaces the older tokens
  proto::IdentityTokens tokens;
};
struct ReadFile {  // answered by FileRead
  proto::FetchLog fetch;
};

struct Action : std::variant<RememberEpoch, RememberJob, RememberContact, Begin, Resume, Release,
                             Signal, Kill, Notice, RepairGpu, Forget, ReadFile, SetFrozen,
                             ProbeNetwork, WriteTokens, SetStepLimit> {
  using variant::variant;
  Action();
  Action(const Action&);
  Action(Action&&) noexcept;
  Action& operator=(const Action&);
  Action& operator=(Action&&) noexcept;
  ~Action();
};

// The core leaves load and free memory in a Heartbeat empty; the shell fills them in.
struct Report
    : std::variant<proto::NodeRegister, proto::Heartbeat, proto::LaunchReady, proto::Started,
                   proto::ExitReport, proto::Goodbye, proto::FetchLogReply, proto::GpuReport,
                   proto::Frozen, proto::AttemptProbed, proto::RenewIdentity> {
  using variant::variant;
  Report();
  Report(const Report&);
  Report(Report&&) noexcept;
  Report& operator=(const Report&);
  Report& operator=(Report&&) noexcept;
  ~Report();
};

}  // namespace gantry::node
