// Steps: tasks that grun starts on the nodes of a running job.
//
// grun asks ctld for a step and gets a signed StepPermission. It hands LaunchStep to each node
// itself (by CURVE to the node's address, or through the job's socket from inside a container).
// Each node's step shim then dials io_address and uses step_io.h's frames over an encrypted stream
// (common/net/secure_stream.h). The data does not pass through ctld. A grun inside a container
// without a network cannot listen: its node does so (StepListen), and passes the connections in.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/job/gpu_bind.h"
#include "common/job/job_spec.h"
#include "common/job/job_state.h"
#include "common/proto/node_order.h"
#include "common/proto/node_report.h"
#include "common/proto/step_launch.h"
#include "common/proto/step_shape.h"

namespace gantry::proto {

// The context with which ctld signs a StepPermission (common/auth/signature.h).
inline constexpr std::string_view kStepPermissionContext = "gantry step permission v1";

struct StepCreate {  // client to ctld
  JobId job{};
  StepShape shape;
  std::string name;
  // For a component of a heterogeneous job: the number of the step in the first component, which
  // this one is a part of.
  std::optional<StepId> part_of{};
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "job", s.job);
    v(2, "shape", s.shape);
    v(3, "name", s.name);
    v(6, "part_of", s.part_of);
  }
};

struct StepNode {
  std::string node;
  std::string address;     // host:port
  std::string public_key;  // Z85, CURVE key of the node
  std::vector<std::uint16_t> cpus;
  std::uint32_t first_rank = 0;
  std::uint32_t tasks = 0;
  std::vector<std::uint32_t> ranks{};  // rising; empty: first_rank .. first_rank + tasks - 1
  // Places in CUDA_VISIBLE_DEVICES of the job there; unset: the step has all of the job's GPUs.
  std::optional<std::vector<std::uint16_t>> gpus{};
  std::int64_t memory = 0;  // bytes for the step there; 0 = what the job has
  [[nodiscard]] std::uint32_t rank(std::uint32_t task) const {
    return task < ranks.size() ? ranks[task] : first_rank + task;
  }
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "node", s.node);
    v(2, "address", s.address);
    v(3, "public_key", s.public_key);
    v(4, "cpus", s.cpus);
    v(5, "first_rank", s.first_rank);
    v(6, "tasks", s.tasks);
    v(7, "ranks", s.ranks);
    v(8, "gpus", s.gpus);
    v(9, "memory", s.memory);
  }
};

struct StepPermission {
  AttemptKey key;
  StepId step{};
  Owner owner;
  std::vector<StepNode> nodes;
  std::uint32_t tasks = 0;
  std::uint32_t cpus_per_task = 1;
  std::string name;
  Instant expires{};  // end of the time for launching; a running step goes on
  Epoch epoch{};
  Duration kill_wait{};   // from SIGTERM to SIGKILL, when the job is ended
  bool may_type = false;  // for an attached reader: what it sends is input of the step
  Duration time_limit{};  // of the step itself; 0 = none
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "key", s.key);
    v(2, "step", s.step);
    v(3, "owner", s.owner);
    v(4, "nodes", s.nodes);
    v(5, "tasks", s.tasks);
    v(6, "cpus_per_task", s.cpus_per_task);
    v(7, "name", s.name);
    v(8, "expires", s.expires);
    v(9, "epoch", s.epoch);
    v(10, "kill_wait", s.kill_wait);
    v(11, "may_type", s.may_type);
    v(14, "time_limit", s.time_limit);
  }
};

struct StepGranted {    // ctld to client
  Bytes permission;     // encoded StepPermission
  Bytes signature;      // ed25519 over it
  bool busy = false;    // nothing is granted, because other steps have the cores; ask again
  bool attach = false;  // the permission is for AttachStep, not for LaunchStep
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "permission", s.permission);
    v(2, "signature", s.signature);
    v(3, "busy", s.busy);
    v(4, "attach", s.attach);
  }
};

// Asks grun's own node, on the job's socket only, to accept the step's streams.
struct StepListen {
  template <class Self, class V>
  static void fields(Self&, V&&) {}
};

struct StepListening {
  std::string address;  // for LaunchStep::io_address
  Bytes ticket;         // for LaunchStep::io_ticket; names this connection
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "address", s.address);
    v(2, "ticket", s.ticket);
  }
};

struct StepDone {  // client to ctld, when the last task has ended; for accounting
  AttemptKey key;
  StepId step{};
  ExitStatus exit;  // largest of the tasks
  Instant started{};
  Instant ended{};
  Usage usage;             // summed over the nodes, as they reported
  bool timed_out = false;  // its own time limit has ended it
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "key", s.key);
    v(2, "step", s.step);
    v(3, "exit", s.exit);
    v(4, "started", s.started);
    v(5, "ended", s.ended);
    v(6, "usage", s.usage);
    v(7, "timed_out", s.timed_out);
  }
};

// The owner of an allocation (galloc, grun outside a job) is done: it completes or fails.
struct EndAllocation {
  JobId job{};
  ExitStatus exit;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "job", s.job);
    v(2, "exit", s.exit);
  }
};

// Order to a node: a running step has another time limit, from its beginning; 0 = none of its own.
struct LimitStep {
  OrderStamp stamp;
  AttemptKey key;
  StepId step{};
  Duration time_limit{};
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "stamp", s.stamp);
    v(2, "key", s.key);
    v(3, "step", s.step);
    v(4, "time_limit", s.time_limit);
  }
};

}  // namespace gantry::proto
