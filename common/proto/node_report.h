// Messages from a node daemon to ctld: registration and reports, identified by (job, attempt).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/job/job_spec.h"
#include "common/job/job_state.h"
#include "common/proto/attempt.h"
#include "common/proto/neighbours.h"
#include "common/resources/gpu.h"

namespace gantry::proto {

// The beginning of the line in layers_off on a node that cannot suspend a running job.
inline constexpr std::string_view kNoSuspension = "suspension of jobs: ";

// A node reports the highest ids that it was told. The controller believes them up to this far
// above its own ids.
inline constexpr std::uint64_t kMostIdsAhead = 100'000'000;

// The first message after connecting, and whenever ctld asks. Answered by NodeAccept.
struct NodeRegister {
  std::string node;  // must be the name for which this key was enrolled
  std::uint16_t protocol = 0;
  std::string version;
  std::string boot_id;              // changes at reboot: then every earlier attempt is gone
  std::string address;              // host:port for steps
  std::vector<std::uint16_t> cpus;  // logical CPUs that jobs may have
  std::int64_t memory = 0;          // bytes for jobs
  std::int64_t scratch = 0;
  std::uint32_t sockets = 1;
  std::uint32_t cores_per_socket = 1;
  std::uint32_t threads_per_core = 1;
  std::string runtime;
  std::vector<std::string> layers_off;
  std::vector<AttemptStatus> attempts;  // every attempt for which the node has a directory
  Epoch highest_epoch{};                // seen so far
  Instant sent{};                       // by the node's clock; NodeAccept returns it
  GpuInventory gpus;
  std::vector<GresCount> gres{};  // how many there are of the declared ones
  JobId highest_job{};  // highest job that it was ever ordered to start; 0 = none, or unknown
  std::vector<SandboxFact> sandboxes{};  // beside the standard one
  // How packets of jobs come to this node from others: the transport's name, and what others need
  // to know for it: "wireguard KEY", "routed fe80::1 02:00:00:00:00:01"; "" = "vxlan".
  std::string transport;
  std::uint32_t abilities = 0;  // bits of bit_of(NodeAbility)
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "node", s.node);
    v(2, "protocol", s.protocol);
    v(3, "version", s.version);
    v(4, "boot_id", s.boot_id);
    v(5, "address", s.address);
    v(6, "cpus", s.cpus);
    v(7, "memory", s.memory);
    v(8, "scratch", s.scratch);
    v(9, "sockets", s.sockets);
    v(10, "cores_per_socket", s.cores_per_socket);
    v(11, "threads_per_core", s.threads_per_core);
    v(12, "runtime", s.runtime);
    v(13, "layers_off", s.layers_off);
    v(14, "attempts", s.attempts);
    v(15, "highest_epoch", s.highest_epoch);
    v(16, "sent", s.sent);
    v(17, "gpus", s.gpus);
    v(18, "gres", s.gres);
    v(19, "highest_job", s.highest_job);
    v(24, "sandboxes", s.sandboxes);
    v(20, "transport", s.transport);
    v(21, "abilities", s.abilities);
  }
};

struct GpuReport {  // the inventory has changed: a fault, a repair, slices made or gone
  std::uint64_t session = 0;
  GpuInventory gpus;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "session", s.session);
    v(2, "gpus", s.gpus);
  }
};

// What a job did on a GPU or slice when the node last looked; for `gctl top`.
struct GpuActivity {
  AttemptKey key;
  std::uint32_t gpu = 0;              // GpuDevice::index
  std::string name;                   // "h100", "h100 1g.10gb"
  std::optional<std::uint32_t> busy;  // percent; unset: the driver does not tell
  std::uint32_t memory_mib = 0, of_memory_mib = 0;
  std::optional<std::uint32_t> power_w;
  std::optional<Duration> idle;  // time since it was last busy, or since the job has it
  bool has_process = false;
  friend bool operator==(const GpuActivity&, const GpuActivity&) = default;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "key", s.key);
    v(2, "gpu", s.gpu);
    v(3, "name", s.name);
    v(4, "busy", s.busy);
    v(5, "memory_mib", s.memory_mib);
    v(6, "of_memory_mib", s.of_memory_mib);
    v(7, "power_w", s.power_w);
    v(8, "idle", s.idle);
    v(9, "has_process", s.has_process);
  }
};

// What a running attempt has used on the node until now, and each of its steps there.
struct StepUsage {
  StepId step{};
  Usage usage;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "step", s.step);
    v(2, "usage", s.usage);
  }
};
struct AttemptUsage {
  AttemptKey key;
  Usage usage;  // of all its processes, those of steps too
  std::vector<StepUsage> steps;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "key", s.key);
    v(2, "usage", s.usage);
    v(3, "steps", s.steps);
  }
};

struct Heartbeat {
  std::uint64_t session = 0;
  double load = 0;
  std::int64_t free_memory = 0;
  Instant sent{};                                // by the node's clock; HeartbeatAck returns it
  std::vector<AttemptCheckpoint> checkpoints{};  // of running attempts that have touched their file
  std::vector<GpuActivity> gpus{};
  std::string trouble{};               // why no job may start here, for people; "" = no trouble
  std::vector<AttemptSleep> asleep{};  // running attempts during which the machine has slept
  std::vector<AttemptUsage> usage{};   // of running attempts
  NodeSharing sharing{};
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "session", s.session);
    v(2, "load", s.load);
    v(3, "free_memory", s.free_memory);
    v(4, "sent", s.sent);
    v(5, "checkpoints", s.checkpoints);
    v(6, "gpus", s.gpus);
    v(7, "trouble", s.trouble);
    v(8, "asleep", s.asleep);
    v(12, "usage", s.usage);
    v(21, "sharing", s.sharing);
  }
};

struct LaunchReady {  // a held attempt is prepared and waits for Go
  AttemptKey key;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "key", s.key);
  }
};

struct Started {  // the batch shell (or the allocation's holder) runs
  AttemptKey key;
  Instant at{};
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "key", s.key);
    v(2, "at", s.at);
  }
};

struct Frozen {  // answers Freeze: the attempt's present state
  AttemptKey key;
  bool frozen = false;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "key", s.key);
    v(2, "frozen", s.frozen);
  }
};

enum class ExitCause : std::uint8_t {
  exited = 1,   // by itself (the exit status counts)
  ordered = 2,  // after Terminate
  out_of_memory = 3,
  launch_failed = 4,  // never ran, for the node's fault; message says why
  shim_lost = 5,      // its shim was killed: the exit status is not known
  fenced = 6,         // the node heard nothing for fence_after and ended it
  node_rebooted = 7,
  // Never ran: its owner named something that does not exist or is not theirs; message says what.
  refused = 8,
};
constexpr auto enum_names(ExitCause) {
  using enum ExitCause;
  return std::array<std::pair<ExitCause, std::string_view>, 8>{{{exited, "exited"},
                                                                {ordered, "ordered"},
                                                                {out_of_memory, "out_of_memory"},
                                                                {launch_failed, "launch_failed"},
                                                                {shim_lost, "shim_lost"},
                                                                {fenced, "fenced"},
                                                                {node_rebooted, "node_rebooted"},
                                                                {refused, "refused"}}};
}

struct ExitReport {  // resent until AckExit; afterwards the node has forgotten the attempt
  AttemptKey key;
  ExitCause cause = ExitCause::exited;
  ExitStatus exit;
  std::string message;  // for people; names the node
  Usage usage;
  std::optional<Instant> started;
  Instant ended{};
  // The time from start to end, by a clock that nobody sets and that stands still while the machine
  // sleeps. Not set: it never ran, or nobody knows.
  std::optional<Duration> ran{};
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "key", s.key);
    v(2, "cause", s.cause);
    v(3, "exit", s.exit);
    v(4, "message", s.message);
    v(5, "usage", s.usage);
    v(6, "started", s.started);
    v(7, "ended", s.ended);
    v(8, "ran", s.ran);
  }
};

struct Goodbye {  // the daemon stops on purpose; its jobs run on
  std::uint64_t session = 0;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "session", s.session);
  }
};

}  // namespace gantry::proto
