// Orders from ctld to one node daemon, identified by (job, attempt). Every order carries (epoch,
// session, seq): a node ignores what is late or repeated, and refuses a controller that was
// replaced. What was not confirmed is repeated from ctld's state; there is no queue of orders.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/job/job_spec.h"
#include "common/job/older_given.h"
#include "common/proto/gate.h"
#include "common/proto/job_change.h"
#include "common/proto/job_network.h"
#include "common/proto/node_report.h"
#include "common/proto/secrets.h"
#include "common/special_members.h"

namespace gantry::proto {

struct OrderStamp {
  Epoch epoch{};
  std::uint64_t session = 0;
  std::uint64_t seq = 0;  // 1.. within the session
  GANTRY_FIELDS(FIELD(1, epoch), FIELD(2, session), FIELD(3, seq))
};

struct NodeAccept {
  OrderStamp stamp;  // seq 0; session is the new one
  std::string cluster;
  std::vector<AttemptKey> kill;         // attempts that must not run; reported as usual
  std::vector<AttemptKey> forget;       // exited and already accounted
  Duration heartbeat{};                 // how often
  std::optional<Duration> fence_after;  // end all jobs after this much silence
  Bytes permission_key;                 // ed25519 public key that signs step permissions
  Instant heard{};  // `sent` of the NodeRegister that this answers; see HeartbeatAck
  GANTRY_FIELDS(FIELD(1, stamp), FIELD(2, cluster), FIELD(3, kill), FIELD(4, forget),
                FIELD(5, heartbeat), FIELD(6, fence_after), FIELD(7, permission_key),
                FIELD(8, heard))
};

// Tells the node that ctld does not know its session. The epoch is that of the session if the node
// sent it (Heartbeat), so that the node still registers with the newest epoch that it knew.
struct RegisterAgain {
  Epoch epoch{};
  GANTRY_FIELDS(FIELD(1, epoch))
};

struct HeartbeatAck {
  OrderStamp stamp;  // seq 0: not an order
  // `sent` of the heartbeat that this answers. The node's time until fencing counts from there, so
  // that a node always gives up before the controller does, however late the answer is.
  Instant heard{};
  GANTRY_FIELDS(FIELD(1, stamp), FIELD(2, heard))
};

// The values that the leader's script of a heterogeneous job gets about each component.
struct HetGroup {
  JobId job{};
  std::string partition;
  JobShape shape;
  std::vector<std::string> older_given;  // as JobSpec's
  std::vector<NodePlacement> placement;
  std::string name, priority_class;  // as JobSpec's
  GivenOptions given{};              // as JobSpec's
  void from_older_form() {
    if (given == GivenOptions{}) given = read_older_given(older_given).given;
    older_given.clear();
  }
  GANTRY_FIELDS(FIELD(1, job), FIELD(2, partition), FIELD(3, shape),
                NAMED_FIELD(4, "given", older_given), FIELD(5, placement), FIELD(6, name),
                FIELD(7, priority_class), NAMED_FIELD(8, "given_options", given))
};

struct Launch {
  GANTRY_SPECIAL_MEMBERS(Launch)
  OrderStamp stamp;
  AttemptKey key;
  bool hold = false;       // prepare, report LaunchReady, and wait for Go
  bool runs_batch = true;  // this node runs the script; others hold the allocation
  JobId array_job{};       // 0 = none
  std::optional<std::uint32_t> array_task;
  std::uint32_t array_count = 0, array_min = 0, array_max = 0, array_step = 0;
  std::uint32_t restarts = 0;
  Owner owner;
  JobSpec spec;
  Bytes script;
  std::map<std::string, std::string> environment;
  std::vector<NodePlacement> placement;  // all nodes, in rank order
  std::uint32_t node_index = 0;          // this node's index in `placement`
  std::string partition;
  std::optional<Duration> time_limit;  // resolved; the controller enforces it
  Instant placed_at{};
  std::vector<HetGroup> het{};  // for the node that runs the script: all components, by offset
  std::string tenant;           // the paying tenant; jobs of one tenant may share GPUs
  std::optional<JobNetwork> network{};  // set if the job has a network of its own
  std::vector<SecretFile>
      secrets{};  // for the job's directory of secrets; not stored on a disk of the node
  std::vector<IdentityToken> identity{};
  std::vector<StorageMount> storage{};  // what the job sees of the site's storage
  std::optional<ObjectStore>
      objects{};                  // if the job stages files; its keys are in the secret kStoreKeys
  std::optional<JobDoor> door{};  // of a replica of a service
  GANTRY_FIELDS(FIELD(1, stamp), FIELD(2, key), FIELD(3, hold), FIELD(4, runs_batch),
                FIELD(5, array_job), FIELD(6, array_task), FIELD(7, array_count),
                FIELD(8, array_min), FIELD(9, array_max), FIELD(10, array_step),
                FIELD(11, restarts), FIELD(12, owner), FIELD(13, spec), FIELD(14, script),
                FIELD(15, environment), FIELD(16, placement), FIELD(17, node_index),
                FIELD(18, partition), FIELD(19, time_limit), FIELD(20, placed_at), FIELD(21, het),
                FIELD(22, tenant), FIELD(23, network), FIELD(24, secrets), FIELD(25, identity),
                FIELD(34, storage), FIELD(35, objects), FIELD(36, door))
};

struct Go {  // run the held attempt now
  OrderStamp stamp;
  AttemptKey key;
  GANTRY_FIELDS(FIELD(1, stamp), FIELD(2, key))
};

// Sends SIGCONT and SIGTERM now, and SIGKILL after the grace time. An attempt that the node never
// got is reported as exited with cause ordered, so that ctld can close it.
struct Terminate {
  OrderStamp stamp;
  AttemptKey key;
  Duration grace{};
  std::string notice;  // line for the job's standard error; "" = none
  GANTRY_FIELDS(FIELD(1, stamp), FIELD(2, key), FIELD(3, grace), FIELD(4, notice))
};

struct SignalAttempt {
  OrderStamp stamp;
  AttemptKey key;
  std::int32_t signal = 0;
  SignalScope scope = SignalScope::steps;
  std::optional<StepId> step{};  // if set, only the processes of this step
  GANTRY_FIELDS(FIELD(1, stamp), FIELD(2, key), FIELD(3, signal), FIELD(4, scope), FIELD(5, step))
};

// Freezes a running attempt, or continues it. The order is repeated until Frozen confirms it.
struct Freeze {
  OrderStamp stamp;
  AttemptKey key;
  bool frozen = false;
  GANTRY_FIELDS(FIELD(1, stamp), FIELD(2, key), FIELD(3, frozen))
};

struct TellAttempt {  // a line for the job's standard error, on whichever node it is written
  OrderStamp stamp;
  AttemptKey key;
  std::string text;
  GANTRY_FIELDS(FIELD(1, stamp), FIELD(2, key), FIELD(3, text))
};

// An administrator has declared that the GPU works again: faults not yet proved gone are dropped.
struct ResumeGpu {
  OrderStamp stamp;
  std::string uuid;
  GANTRY_FIELDS(FIELD(1, stamp), FIELD(2, uuid))
};

struct AckExit {
  OrderStamp stamp;
  AttemptKey key;
  GANTRY_FIELDS(FIELD(1, stamp), FIELD(2, key))
};

}  // namespace gantry::proto
