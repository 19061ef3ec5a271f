// Orders from ctld to one node daemon, identified by (job, attempt). Every order carries (epoch,
// session, seq): a node ignores what is late or repeated, and refuses a controller that was
// replaced. What was not confirmed is repeated from ctld's state; there is no queue of orders.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/job/job_spec.h"
#include "common/job/older_given.h"
#include "common/proto/gate.h"
#include "common/proto/job_change.h"
#include "common/proto/job_network.h"
#include "common/proto/node_report.h"
#include "common/proto/secrets.h"

namespace gantry::proto {

struct OrderStamp {
  Epoch epoch{};
  std::uint64_t session = 0;
  std::uint64_t seq = 0;  // 1.. within the session
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "epoch", s.epoch);
    v(2, "session", s.session);
    v(3, "seq", s.seq);
  }
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
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "stamp", s.stamp);
    v(2, "cluster", s.cluster);
    v(3, "kill", s.kill);
    v(4, "forget", s.forget);
    v(5, "heartbeat", s.heartbeat);
    v(6, "fence_after", s.fence_after);
    v(7, "permission_key", s.permission_key);
    v(8, "heard", s.heard);
  }
};

// Tells the node that ctld does not know its session. The epoch is the one of that session if the
// node named it (Heartbeat), so that the node still registers with the newest that it had heard.
struct RegisterAgain {
  Epoch epoch{};
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "epoch", s.epoch);
  }
};

struct HeartbeatAck {
  OrderStamp stamp;  // seq 0: not an order
  // `sent` of the heartbeat that this answers. The node's time until fencing counts from there, so
  // that a node always gives up before the controller does, however late the answer is.
  Instant heard{};
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "stamp", s.stamp);
    v(2, "heard", s.heard);
  }
};

// What the leader's script of a heterogeneous job is told about each component.
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
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "job", s.job);
    v(2, "partition", s.partition);
    v(3, "shape", s.shape);
    v(4, "given", s.older_given);
    v(5, "placement", s.placement);
    v(6, "name", s.name);
    v(7, "priority_class", s.priority_class);
    v(8, "given_options", s.given);
  }
};

struct Launch {
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
  std::uint32_t node_index = 0;          // this node's place in it
  std::string partition;
  std::optional<Duration> time_limit;  // resolved; the controller enforces it
  Instant placed_at{};
  std::vector<HetGroup> het{};  // for the node that runs the script: all components, by offset
  std::string tenant;           // who pays; jobs of one tenant may share GPUs
  std::optional<JobNetwork> network{};  // set if the job has a network of its own
  std::vector<SecretFile> secrets{};    // for its directory of secrets; on no disk of the node
  std::vector<IdentityToken> identity{};
  std::vector<StorageMount> storage{};   // what the job sees of the site's storage
  std::optional<ObjectStore> objects{};  // if it stages files; its keys: the secret kStoreKeys
  std::optional<JobDoor> door{};         // of a replica of a service
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "stamp", s.stamp);
    v(2, "key", s.key);
    v(3, "hold", s.hold);
    v(4, "runs_batch", s.runs_batch);
    v(5, "array_job", s.array_job);
    v(6, "array_task", s.array_task);
    v(7, "array_count", s.array_count);
    v(8, "array_min", s.array_min);
    v(9, "array_max", s.array_max);
    v(10, "array_step", s.array_step);
    v(11, "restarts", s.restarts);
    v(12, "owner", s.owner);
    v(13, "spec", s.spec);
    v(14, "script", s.script);
    v(15, "environment", s.environment);
    v(16, "placement", s.placement);
    v(17, "node_index", s.node_index);
    v(18, "partition", s.partition);
    v(19, "time_limit", s.time_limit);
    v(20, "placed_at", s.placed_at);
    v(21, "het", s.het);
    v(22, "tenant", s.tenant);
    v(23, "network", s.network);
    v(24, "secrets", s.secrets);
    v(25, "identity", s.identity);
    v(34, "storage", s.storage);
    v(35, "objects", s.objects);
    v(36, "door", s.door);
  }
};

struct Go {  // run the held attempt now
  OrderStamp stamp;
  AttemptKey key;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "stamp", s.stamp);
    v(2, "key", s.key);
  }
};

// Sends SIGCONT and SIGTERM now, and SIGKILL after the grace time. An attempt that the node never
// got is reported as exited with cause ordered, so that ctld can close it.
struct Terminate {
  OrderStamp stamp;
  AttemptKey key;
  Duration grace{};
  std::string notice;  // line for the job's standard error; "" = none
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "stamp", s.stamp);
    v(2, "key", s.key);
    v(3, "grace", s.grace);
    v(4, "notice", s.notice);
  }
};

struct SignalAttempt {
  OrderStamp stamp;
  AttemptKey key;
  std::int32_t signal = 0;
  SignalScope scope = SignalScope::steps;
  std::optional<StepId> step{};  // if set, only the processes of this step
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "stamp", s.stamp);
    v(2, "key", s.key);
    v(3, "signal", s.signal);
    v(4, "scope", s.scope);
    v(5, "step", s.step);
  }
};

// Freezes a running attempt, or lets it go on. The order is repeated until Frozen confirms it.
struct Freeze {
  OrderStamp stamp;
  AttemptKey key;
  bool frozen = false;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "stamp", s.stamp);
    v(2, "key", s.key);
    v(3, "frozen", s.frozen);
  }
};

struct TellAttempt {  // a line for the job's standard error, on whichever node it is written
  OrderStamp stamp;
  AttemptKey key;
  std::string text;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "stamp", s.stamp);
    v(2, "key", s.key);
    v(3, "text", s.text);
  }
};

// An administrator says that the GPU is well again: faults not yet proved gone are forgotten.
struct ResumeGpu {
  OrderStamp stamp;
  std::string uuid;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "stamp", s.stamp);
    v(2, "uuid", s.uuid);
  }
};

struct AckExit {
  OrderStamp stamp;
  AttemptKey key;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "stamp", s.stamp);
    v(2, "key", s.key);
  }
};

}  // namespace gantry::proto
