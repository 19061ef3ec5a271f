// Messages from a node daemon to ctld: registration and reports, identified by (job, attempt).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/job/job_spec.h"
#include "common/job/job_state.h"
#include "common/proto/attempt.h"
#include "common/proto/neighbours.h"
#include "common/resources/gpu.h"
#include "common/special_members.h"

namespace gantry::proto {

// The beginning of the line in layers_off on a node that cannot suspend a running job.
inline constexpr std::string_view kNoSuspension = "suspension of jobs: ";

// A node reports the highest ids that it was told. The controller believes them up to this far
// above its own ids.
inline constexpr std::uint64_t kMostIdsAhead = 100'000'000;

// The first message after connecting, and whenever ctld asks. Answered by NodeAccept.
struct NodeRegister {
  GANTRY_SPECIAL_MEMBERS(NodeRegister)
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
  std::vector<SandboxFact> sandboxes{};  // in addition to the standard one
  // How packets of jobs come to this node from others: the transport's name, and what others need
  // to know for it: "wireguard KEY", "routed fe80::1 02:00:00:00:00:01"; "" = "vxlan".
  std::string transport;
  std::uint32_t abilities = 0;  // bits of bit_of(NodeAbility)
  GANTRY_FIELDS(FIELD(1, node), FIELD(2, protocol), FIELD(3, version), FIELD(4, boot_id),
                FIELD(5, address), FIELD(6, cpus), FIELD(7, memory), FIELD(8, scratch),
                FIELD(9, sockets), FIELD(10, cores_per_socket), FIELD(11, threads_per_core),
                FIELD(12, runtime), FIELD(13, layers_off), FIELD(14, attempts),
                FIELD(15, highest_epoch), FIELD(16, sent), FIELD(17, gpus), FIELD(18, gres),
                FIELD(19, highest_job), FIELD(24, sandboxes), FIELD(20, transport),
                FIELD(21, abilities))
};

struct GpuReport {  // the inventory has changed: a fault, a repair, slices made or gone
  std::uint64_t session = 0;
  GpuInventory gpus;
  GANTRY_FIELDS(FIELD(1, session), FIELD(2, gpus))
};

// What a job did on a GPU or slice when the node last looked; for `gctl top`.
struct GpuActivity {
  AttemptKey key;
  std::uint32_t gpu = 0;              // GpuDevice::index
  std::string name;                   // "h100", "h100 1g.10gb"
  std::optional<std::uint32_t> busy;  // percent; unset: the driver does not report it
  std::uint32_t memory_mib = 0, of_memory_mib = 0;
  std::optional<std::uint32_t> power_w;
  std::optional<Duration> idle;  // time since it was last busy, or since the job has it
  bool has_process = false;
  friend bool operator==(const GpuActivity&, const GpuActivity&) = default;
  GANTRY_FIELDS(FIELD(1, key), FIELD(2, gpu), FIELD(3, name), FIELD(4, busy), FIELD(5, memory_mib),
                FIELD(6, of_memory_mib), FIELD(7, power_w), FIELD(8, idle), FIELD(9, has_process))
};

// What a running attempt has used on the node until now, and each of its steps there.
struct StepUsage {
  StepId step{};
  Usage usage;
  GANTRY_FIELDS(FIELD(1, step), FIELD(2, usage))
};
struct AttemptUsage {
  AttemptKey key;
  Usage usage;  // of all its processes, including those of steps
  std::vector<StepUsage> steps;
  GANTRY_FIELDS(FIELD(1, key), FIELD(2, usage), FIELD(3, steps))
};

struct Heartbeat {
  std::uint64_t session = 0;
  double load = 0;
  std::int64_t free_memory = 0;
  Instant sent{};  // by the node's clock; HeartbeatAck returns it
  std::vector<AttemptCheckpoint>
      checkpoints{};  // for running attempts that have touched their checkpoint file
  std::vector<GpuActivity> gpus{};
  std::string trouble{};               // why no job may start here, for people; "" = no trouble
  std::vector<AttemptSleep> asleep{};  // running attempts during which the machine has slept
  std::vector<AttemptUsage> usage{};   // of running attempts
  NodeSharing sharing{};
  GANTRY_FIELDS(FIELD(1, session), FIELD(2, load), FIELD(3, free_memory), FIELD(4, sent),
                FIELD(5, checkpoints), FIELD(6, gpus), FIELD(7, trouble), FIELD(8, asleep),
                FIELD(12, usage), FIELD(21, sharing))
};

struct LaunchReady {  // a held attempt is prepared and waits for Go
  AttemptKey key;
  GANTRY_FIELDS(FIELD(1, key))
};

struct Started {  // the batch shell (or the allocation's holder) runs
  AttemptKey key;
  Instant at{};
  GANTRY_FIELDS(FIELD(1, key), FIELD(2, at))
};

struct Frozen {  // answers Freeze: the attempt's present state
  AttemptKey key;
  bool frozen = false;
  GANTRY_FIELDS(FIELD(1, key), FIELD(2, frozen))
};

enum class ExitCause : std::uint8_t {
  exited = 1,   // by itself (then the exit status counts)
  ordered = 2,  // after Terminate
  out_of_memory = 3,
  launch_failed = 4,  // never ran, because of the node; message tells why
  shim_lost = 5,      // its shim was killed, so the exit status is not known
  fenced = 6,         // the node received nothing for fence_after and ended it
  node_rebooted = 7,
  // Never ran, because its owner named something that does not exist or is not allowed; message
  // tells what.
  refused = 8,
};
GANTRY_NAMES(ExitCause, {exited, "exited"}, {ordered, "ordered"}, {out_of_memory, "out_of_memory"},
             {launch_failed, "launch_failed"}, {shim_lost, "shim_lost"}, {fenced, "fenced"},
             {node_rebooted, "node_rebooted"}, {refused, "refused"})

struct ExitReport {  // resent until AckExit; afterwards the node has forgotten the attempt
  AttemptKey key;
  ExitCause cause = ExitCause::exited;
  ExitStatus exit;
  std::string message;  // for people; contains the node's name
  Usage usage;
  std::optional<Instant> started;
  Instant ended{};
  // The time from start to end, by a clock that nobody sets and that stands still while the machine
  // sleeps. Not set: it never ran, or nobody knows.
  std::optional<Duration> ran{};
  GANTRY_FIELDS(FIELD(1, key), FIELD(2, cause), FIELD(3, exit), FIELD(4, message), FIELD(5, usage),
                FIELD(6, started), FIELD(7, ended), FIELD(8, ran))
};

struct Goodbye {  // the daemon stops on purpose; its jobs run on
  std::uint64_t session = 0;
  GANTRY_FIELDS(FIELD(1, session))
};

}  // namespace gantry::proto
