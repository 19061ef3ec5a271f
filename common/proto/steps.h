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
#include "common/proto/node_report.h"
#include "common/proto/step_shape.h"

namespace gantry::proto {

// The context with which ctld signs a StepPermission (common/auth/signature.h).
inline constexpr std::string_view kStepPermissionContext = "gantry step permission v1";

struct StepCreate {  // client to ctld
  JobId job{};
  StepShape shape;
  std::string name;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "job", s.job);
    v(2, "shape", s.shape);
    v(3, "name", s.name);
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

// The size of the terminal window for task 0, in characters.
struct TerminalSize {
  std::uint16_t rows = 0;
  std::uint16_t columns = 0;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "rows", s.rows);
    v(2, "columns", s.columns);
  }
};

// The interface by which the tasks of a step find each other, besides their environment.
enum class StepMpi : std::uint8_t { none = 0, pmix = 1, pmi2 = 2 };
constexpr auto enum_names(StepMpi) {
  return std::array<std::pair<StepMpi, std::string_view>, 3>{
      {{StepMpi::none, "none"}, {StepMpi::pmix, "pmix"}, {StepMpi::pmi2, "pmi2"}}};
}

// One of several steps, in components of a heterogeneous job, that their tasks see as one step.
struct HetStep {
  std::uint32_t first_rank = 0, first_node = 0;  // position of this step within all of them
  std::vector<std::string> nodes;                // nodes of all of them
  std::vector<std::uint32_t> tasks;              // tasks on each of `nodes`
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "first_rank", s.first_rank);
    v(2, "first_node", s.first_node);
    v(3, "nodes", s.nodes);
    v(4, "tasks", s.tasks);
  }
};

struct LaunchStep {  // client to node
  Bytes permission;
  Bytes signature;
  std::string node;  // which of the permission's nodes this is for
  std::vector<std::string> argv;
  std::map<std::string, std::string> environment;
  std::string work_dir;
  std::string io_address;  // host:port to dial
  Bytes io_key;            // 32 random bytes, made by grun for this step
  std::string std_out;     // "" = to grun; else pattern of a file on the node
  std::string std_err;
  Bytes io_ticket;  // says in the open which step the stream is for
  std::string job_name;
  std::optional<TerminalSize> terminal;  // for task 0; the other tasks then have no standard files
  StepMpi mpi = StepMpi::none;
  std::optional<HetStep> het{};
  CoreOrder core_order = CoreOrder::block;
  std::optional<GpuBind> gpu_bind{};        // unset: of an older client SLURM_GPU_BIND says it
  OpenMode open_mode = OpenMode::truncate;  // of std_out and std_err
  // The numbers of nodes and tasks in the variables stay as `environment` has them.
  bool keep_sizes = false;
  ProcessLimits limits;
  bool meeting_point = true;  // the tasks get MASTER_ADDR and MASTER_PORT
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "permission", s.permission);
    v(2, "signature", s.signature);
    v(3, "node", s.node);
    v(4, "argv", s.argv);
    v(5, "environment", s.environment);
    v(6, "work_dir", s.work_dir);
    v(7, "io_address", s.io_address);
    v(8, "io_key", s.io_key);
    v(9, "std_out", s.std_out);
    v(10, "std_err", s.std_err);
    v(11, "io_ticket", s.io_ticket);
    v(12, "job_name", s.job_name);
    v(13, "terminal", s.terminal);
    v(14, "mpi", s.mpi);
    v(15, "het", s.het);
    v(16, "core_order", s.core_order);
    v(17, "gpu_bind", s.gpu_bind);
    v(18, "open_mode", s.open_mode);
    v(19, "keep_sizes", s.keep_sizes);
    v(20, "limits", s.limits);
    v(21, "meeting_point", s.meeting_point);
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
  Usage usage;  // summed over the nodes, as they reported
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "key", s.key);
    v(2, "step", s.step);
    v(3, "exit", s.exit);
    v(4, "started", s.started);
    v(5, "ended", s.ended);
    v(6, "usage", s.usage);
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

}  // namespace gantry::proto
