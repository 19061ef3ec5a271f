// Steps: tasks that grun starts on the nodes of a running job.
//
// grun asks ctld for a step and gets a signed StepPermission. It hands LaunchStep to each node
// itself (by CURVE to the node's address, or through the job's socket from inside a container).
// Each node's step shim then dials io_address and uses step_io.h's frames over an encrypted stream
// (common/net/secure_stream.h). The data does not pass through ctld. A grun inside a container
// without a network cannot listen: its node does so (StepListen), and passes the connections in.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/job/asked_tres.h"
#include "common/job/gpu_bind.h"
#include "common/job/job_spec.h"
#include "common/job/job_state.h"
#include "common/proto/node_order.h"
#include "common/proto/node_report.h"
#include "common/proto/step_launch.h"
#include "common/time/time.h"

namespace gantry::proto {

// What a step asks for: how many tasks, on which nodes of its job, with which cores.

struct StepShape {
  std::uint32_t nodes = 0;  // 0 = as many as needed
  std::uint32_t tasks = 0;  // 0 = the job's
  std::optional<std::uint32_t> tasks_per_node;
  std::uint32_t cpus_per_task = 0;    // 0 = the job's
  std::vector<std::string> nodelist;  // -w
  bool overlap = false;               // may share cores with other steps
  bool exclusive = false;             // only cores that no other step has; without them: busy
  bool cyclic = false;                // tasks are numbered round the nodes, not node by node
  bool overcommit = false;            // more tasks than cores: all tasks share all cores
  // Tasks are dealt and numbered round-robin over the nodes, in blocks of this many; 0 = see
  // `cyclic`.
  std::uint32_t plane = 0;
  std::vector<std::string> hosts;     // the node of each task, by its rank; none = they are dealt
  std::vector<std::string> excluded;  // -x
  std::int64_t memory_per_node = 0;   // bytes for the step on each node; 0 = what the job has
  std::int64_t memory_per_cpu = 0;    // bytes for each core of the step; 0 = the same
  // The step's own GPUs, out of the job's; all unset: its tasks see all of the job's.
  std::optional<std::uint32_t> gpus, gpus_per_node, gpus_per_task;
  std::string gpu_model;   // "" = any; "a100|h100": one of them
  Duration time_limit{};   // 0 = the job's
  bool pack = false;       // nodes are filled one by one, instead of dividing the tasks evenly
  AskedTres tres;          // for listings
  bool all_cores = false;  // a launcher's step: the tasks share all cores of the job on their node
  GANTRY_FIELDS(FIELD(1, nodes), FIELD(2, tasks), FIELD(3, tasks_per_node), FIELD(4, cpus_per_task),
                FIELD(5, nodelist), FIELD(6, overlap), FIELD(7, exclusive), FIELD(8, cyclic),
                FIELD(9, overcommit), FIELD(10, plane), FIELD(11, hosts), FIELD(12, excluded),
                FIELD(13, memory_per_node), FIELD(14, memory_per_cpu), FIELD(15, gpus),
                FIELD(16, gpus_per_node), FIELD(17, gpus_per_task), FIELD(18, time_limit),
                FIELD(19, all_cores), FIELD(20, gpu_model), FIELD(21, pack), FIELD(30, tres))
};

// The context with which ctld signs a StepPermission (common/auth/signature.h).
inline constexpr std::string_view kStepPermissionContext = "gantry step permission v1";

struct StepCreate {  // client to ctld
  JobId job{};
  StepShape shape;
  std::string name;
  // For a component of a heterogeneous job: the number of the step in the first component, of which
  // this step is a part.
  std::optional<StepId> part_of{};
  GANTRY_FIELDS(FIELD(1, job), FIELD(2, shape), FIELD(3, name), FIELD(6, part_of))
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
  GANTRY_FIELDS(FIELD(1, node), FIELD(2, address), FIELD(3, public_key), FIELD(4, cpus),
                FIELD(5, first_rank), FIELD(6, tasks), FIELD(7, ranks), FIELD(8, gpus),
                FIELD(9, memory))
};

struct StepPermission {
  AttemptKey key;
  StepId step{};
  Owner owner;
  std::vector<StepNode> nodes;
  std::uint32_t tasks = 0;
  std::uint32_t cpus_per_task = 1;
  std::string name;
  Instant expires{};  // latest time for launching; a running step continues
  Epoch epoch{};
  Duration kill_wait{};   // from SIGTERM to SIGKILL, when the job is ended
  bool may_type = false;  // for an attached reader: its input goes to the step
  Duration time_limit{};  // limit of the step itself; 0 = none
  GANTRY_FIELDS(FIELD(1, key), FIELD(2, step), FIELD(3, owner), FIELD(4, nodes), FIELD(5, tasks),
                FIELD(6, cpus_per_task), FIELD(7, name), FIELD(8, expires), FIELD(9, epoch),
                FIELD(10, kill_wait), FIELD(11, may_type), FIELD(14, time_limit))
};

struct StepGranted {    // ctld to client
  Bytes permission;     // encoded StepPermission
  Bytes signature;      // ed25519 over it
  bool busy = false;    // nothing is granted, because other steps have the cores; ask again
  bool attach = false;  // the permission is for AttachStep, not for LaunchStep
  GANTRY_FIELDS(FIELD(1, permission), FIELD(2, signature), FIELD(3, busy), FIELD(4, attach))
};

// Asks grun's own node, on the job's socket only, to accept the step's streams.
struct StepListen {
  GANTRY_FIELDS()
};

struct StepListening {
  std::string address;  // for LaunchStep::io_address
  Bytes ticket;         // for LaunchStep::io_ticket; identifies this connection
  GANTRY_FIELDS(FIELD(1, address), FIELD(2, ticket))
};

struct StepDone {  // client to ctld, when the last task has ended; for accounting
  AttemptKey key;
  StepId step{};
  ExitStatus exit;  // largest of the tasks
  Instant started{};
  Instant ended{};
  Usage usage;             // summed over the nodes, as they reported
  bool timed_out = false;  // its own time limit ended it
  GANTRY_FIELDS(FIELD(1, key), FIELD(2, step), FIELD(3, exit), FIELD(4, started), FIELD(5, ended),
                FIELD(6, usage), FIELD(7, timed_out))
};

// The owner of an allocation (galloc, grun outside a job) is done: it completes or fails.
struct EndAllocation {
  JobId job{};
  ExitStatus exit;
  GANTRY_FIELDS(FIELD(1, job), FIELD(2, exit))
};

// Order to a node: a running step has another time limit, from its beginning; 0 = none of its own.
struct LimitStep {
  OrderStamp stamp;
  AttemptKey key;
  StepId step{};
  Duration time_limit{};
  GANTRY_FIELDS(FIELD(1, stamp), FIELD(2, key), FIELD(3, step), FIELD(4, time_limit))
};

}  // namespace gantry::proto
