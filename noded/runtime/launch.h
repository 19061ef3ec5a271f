// Files between noded and its shims: an order is in the job's directory as launch.msgpack, facts of
// the node in <state>/setup.msgpack, the exit record in exit.msgpack. A shim needs nothing else,
// and survives a restart or an upgrade of noded. Paths are absolute. Sizes are bytes.
#pragma once

#include <array>
#include <csignal>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/fields.h"
#include "common/job/job_spec.h"
#include "common/job/job_state.h"
#include "common/proto/job_network.h"
#include "common/proto/node_report.h"
#include "common/proto/steps.h"
#include "common/time/time.h"
#include "noded/machine/cgroup.h"
#include "noded/machine/device.h"
#include "noded/runtime/records.h"

namespace gantry::runtime {

// The settings that all orders of this node share: the OCI runtime, directories, and limits.
enum class RuntimeKind : std::uint8_t { crun = 1, runc = 2, process = 3 };
constexpr auto enum_names(RuntimeKind) {
  return std::array<std::pair<RuntimeKind, std::string_view>, 3>{
      {{RuntimeKind::crun, "crun"},
       {RuntimeKind::runc, "runc"},
       {RuntimeKind::process, "process"}}};
}

// Written once when noded starts.
struct NodeSetup {
  std::string node;
  std::string cluster;
  std::string state_dir;
  std::string mount_dir;  // where a shim mounts privately; an empty directory
  RuntimeKind runtime = RuntimeKind::crun;
  std::string runtime_path;
  std::string shim_path;
  std::string init_path;
  CgroupLayout cgroups;
  std::string hide_cgroup2;  // a cgroup2 mount that the runtime must not see; "" = none
  bool rootless = false;
  bool user_namespace = true;
  std::uint32_t subid_base = 0x70000000;  // first host id of a container's other 65535 ids
  bool allow_root_jobs = false;
  std::vector<std::string> writable_paths;
  std::vector<std::string> storage;     // noded.storage: directories that jobs see only by a grant
  std::vector<std::string> image_dirs;  // empty = every directory that the user may read
  std::string image_cache_dir;
  std::string scratch_dir;             // "" = no node-local scratch disk
  std::string notify_socket;           // socket for datagrams to noded
  Duration hook_timeout = minutes(5);  // for prolog, epilog
  Duration image_timeout = minutes(30);
  Duration stage_timeout = hours(2);  // for one copy from or to an object store
  std::int64_t image_cache_size = 0;  // bytes of all unpacked images
  std::int64_t image_size = 0;        // bytes of one image
  std::int64_t image_files = 0;
  // Runtimes of sandboxes that have a kernel of their own; "" = this node has none.
  std::string gvisor_path, vm_path;
  std::vector<std::string> image_check;  // command that checks each new image; empty = no check
  GANTRY_FIELDS(FIELD(1, node), FIELD(2, cluster), FIELD(3, state_dir), FIELD(4, mount_dir),
                FIELD(5, runtime), FIELD(6, runtime_path), FIELD(7, shim_path), FIELD(8, init_path),
                FIELD(9, cgroups), FIELD(10, hide_cgroup2), FIELD(11, rootless),
                FIELD(12, user_namespace), FIELD(13, subid_base), FIELD(14, allow_root_jobs),
                FIELD(15, writable_paths), FIELD(16, image_dirs), FIELD(17, image_cache_dir),
                FIELD(18, scratch_dir), FIELD(19, notify_socket), FIELD(20, hook_timeout),
                FIELD(21, image_timeout), FIELD(22, image_cache_size), FIELD(23, image_size),
                FIELD(24, image_files), FIELD(33, storage), FIELD(34, stage_timeout),
                FIELD(29, gvisor_path), FIELD(30, vm_path), FIELD(31, image_check))
};

// The door of a service replica, in the order to its shim: the address at which the node accepts
// connections for the replica.
struct LaunchDoor {
  std::string address;  // of this node, numeric
  std::uint16_t port = 0;
  std::uint16_t inside = 0;  // port on 127.0.0.1 inside the job
  std::string password;
  GANTRY_FIELDS(FIELD(1, address), FIELD(2, port), FIELD(3, inside), FIELD(4, password))
};

enum class LaunchKind : std::uint8_t {
  batch = 1,   // runs the script
  holder = 2,  // an empty container that steps enter; ends when it is told to
};
constexpr auto enum_names(LaunchKind) {
  return std::array<std::pair<LaunchKind, std::string_view>, 2>{
      {{LaunchKind::batch, "batch"}, {LaunchKind::holder, "holder"}}};
}

struct LaunchRequest {
  AttemptKey key;
  LaunchKind kind = LaunchKind::batch;
  bool hold = false;  // prepare, report `held`, and run only after go()
  Owner owner;
  std::string name;                         // job name, for %x
  JobId array_job{};                        // 0 = none; for %A
  std::optional<std::uint32_t> array_task;  // for %a
  std::uint32_t node_index = 0;             // for %n
  std::string work_dir;
  std::string std_in;   // "" = /dev/null
  std::string std_out;  // pattern; "" = gantry-%j.out or gantry-%A_%a.out
  std::string std_err;  // "" = joined to std_out
  OpenMode open_mode = OpenMode::truncate;
  ContainerSpec container;
  NetworkMode network = NetworkMode::loopback;
  std::map<std::string, std::string> hosts;  // name -> address, for the job's /etc/hosts
  Bytes script;                              // batch: run as /run/gantry/script
  std::vector<std::string> argv;             // batch: arguments of the script
  std::map<std::string, std::string> env;    // complete; only TMPDIR and defaults are added
  std::vector<std::uint16_t> cpus;           // logical CPUs; empty = not pinned
  std::vector<std::uint16_t> mems;           // NUMA nodes; empty = those of the parent
  std::int64_t memory = 0;                   // limit; 0 = none
  std::uint32_t pids_max = 0;                // 0 = none
  std::uint64_t io_rate = 0;                 // limit in bytes per second for each disk; 0 = none
  std::int64_t tmp_bytes = 0;                // private /tmp; 0 = half of memory
  std::int64_t scratch = 0;                  // > 0: /tmp is a directory of the scratch disk
  std::string prolog, epilog;                // "" = none
  std::vector<LaunchDevice> devices;         // GPUs of the job; it can open no other GPU
  LaunchSharing sharing;
  // Mounts of the driver's files. Only jobs with an image get them, the hooks and the device_gids.
  std::vector<LaunchMount> mounts;
  std::vector<LaunchHook> hooks;
  std::vector<std::uint32_t> device_gids;  // groups that CDI gives to the job, to open the devices
  std::vector<LaunchGpu> gpus;
  // The variables set by the controller and this node; programs that run as root get only these.
  std::map<std::string, std::string> stated;
  std::string checkpoint_file;           // path for the job and this node; "" = none
  std::vector<VisibleGpu> visible_gpus;  // in the order of CUDA_VISIBLE_DEVICES
  ProcessLimits limits;                  // initial limits of the job's programs
  GpuNames gpu_names = GpuNames::uuid;
  std::optional<proto::JobNetwork> parts;  // set if the job has its own network
  std::string network_space, network_sys;  // paths of its namespace, and of a sysfs that shows it
  std::vector<std::string>
      resolvers;                      // addresses for the job's /etc/resolv.conf; empty = unchanged
  std::string secrets_dir;            // the job sees it as kSecretsInside; "" = none
  bool has_tokens = false;            // it contains tokens that have to be renewed
  std::string tenant;                 // tenant of the job; "" = none
  std::vector<StorageMount> storage;  // what the job sees of the site's storage (noded.storage)
  std::optional<ObjectStore> objects;  // set if the job stages files
  std::vector<StageCopy> stage_in, stage_out;
  Sandbox sandbox = Sandbox::standard;
  std::optional<LaunchDoor> door;  // door of a replica of a service
  // Copied and destroyed only in launch_codec.cc, because all of noded and the shim uses it.
  LaunchRequest();
  LaunchRequest(const LaunchRequest&);
  LaunchRequest(LaunchRequest&&) noexcept;
  LaunchRequest& operator=(const LaunchRequest&);
  LaunchRequest& operator=(LaunchRequest&&) noexcept;
  ~LaunchRequest();
  void from_older_form();  // an older order has these two only as variables

  // Sets the variable for the job and for programs that run as root.
  void state(const std::string& name, const std::string& value) {
    env[name] = value;
    stated[name] = value;
  }
  GANTRY_FIELDS(FIELD(1, key), FIELD(2, kind), FIELD(3, hold), FIELD(4, owner), FIELD(5, name),
                FIELD(6, array_job), FIELD(7, array_task), FIELD(8, node_index), FIELD(9, work_dir),
                FIELD(10, std_in), FIELD(11, std_out), FIELD(12, std_err), FIELD(13, open_mode),
                FIELD(14, container), FIELD(15, network), FIELD(16, script), FIELD(17, argv),
                FIELD(18, env), FIELD(19, cpus), FIELD(20, mems), FIELD(21, memory),
                FIELD(22, pids_max), FIELD(23, tmp_bytes), FIELD(24, scratch), FIELD(25, prolog),
                FIELD(26, epilog), FIELD(27, devices), FIELD(28, sharing), FIELD(29, mounts),
                FIELD(30, hooks), FIELD(31, device_gids), FIELD(32, gpus), FIELD(33, hosts),
                FIELD(34, stated), FIELD(35, checkpoint_file), FIELD(36, visible_gpus),
                FIELD(37, limits), FIELD(38, gpu_names), FIELD(39, parts), FIELD(40, network_space),
                FIELD(41, network_sys), FIELD(58, resolvers), FIELD(67, io_rate),
                FIELD(68, secrets_dir), FIELD(69, has_tokens), FIELD(72, tenant),
                FIELD(80, storage), FIELD(81, objects), FIELD(82, stage_in), FIELD(83, stage_out),
                FIELD(77, sandbox), FIELD(88, door))
};

// True if a signal to a step goes only to its tasks and not to the processes that they started, as
// in Slurm. Signals that interrupt, end or stop a step go to every process.
inline bool is_for_tasks(int number) {
  return number != SIGINT && number != SIGQUIT && number != SIGTERM && number != SIGKILL &&
         number != SIGSTOP && number != SIGCONT;
}

// The tasks of a step on this node, which run inside the container of a running attempt.
struct StepRequest {
  AttemptKey key;
  StepId step{};
  std::string name;
  std::vector<std::string> argv;
  std::map<std::string, std::string> env;                    // the same for all tasks
  std::vector<std::map<std::string, std::string>> task_env;  // one per task, added to env
  std::string work_dir;
  std::uint32_t first_rank = 0;
  std::vector<std::uint32_t>
      ranks;  // ranks of the tasks here, ascending; empty: from first_rank on
  std::uint32_t node_index = 0;
  std::vector<std::uint16_t> cpus;
  bool bind_tasks = false;  // divide cpus evenly among the tasks
  std::string std_out;      // "" = through StepIo; else pattern of a file on the node
  std::string std_err;
  std::string std_in;      // pattern of a file on this node that each task reads; "" = see input
  std::string io_address;  // for StepIo: address to connect to, tcp://HOST:PORT, numeric; "" = none
  Bytes io_key;
  Bytes io_ticket;
  std::optional<proto::TerminalSize>
      terminal;  // terminal of rank 0; the others read and write nothing
  proto::StepMpi mpi = proto::StepMpi::none;
  std::vector<std::string> nodes;         // for mpi: nodes of the whole step, in the order of ranks
  std::vector<std::uint32_t> node_tasks;  // for mpi: number of tasks on each of them
  std::string node;                       // name of this node
  std::optional<GpuBind> gpu_bind;        // unset: an older client sends it as SLURM_GPU_BIND
  proto::StepInputTo input = proto::StepInputTo::first_task;
  std::uint32_t input_rank = 0;
  std::optional<OpenMode> open_mode;               // of std_out and std_err; unset: the job's
  std::optional<std::vector<std::uint16_t>> gpus;  // indexes in visible_gpus; unset: all
  std::int64_t memory = 0;                         // limit of all tasks here; 0 = the job's
  Duration time_limit{};                           // 0 = the job's
  Duration kill_wait{};                            // from SIGTERM to SIGKILL
  ProcessLimits limits;
  // By task: its CPUs (empty: its share of `cpus`, see bind_tasks), the NUMA nodes of its memory
  // (empty: all), and lines for its standard error, in which "{pid}" stands for its process id.
  std::vector<std::vector<std::uint16_t>> task_cpus, task_mems;
  std::vector<std::string> task_notes;
  bool mems_preferred = false;  // other memory may be used if the NUMA nodes' memory is full
  GANTRY_FIELDS(FIELD(1, key), FIELD(2, step), FIELD(3, name), FIELD(4, argv), FIELD(5, env),
                FIELD(6, task_env), FIELD(7, work_dir), FIELD(8, first_rank), FIELD(9, node_index),
                FIELD(10, cpus), FIELD(11, bind_tasks), FIELD(12, std_out), FIELD(13, std_err),
                FIELD(14, io_address), FIELD(15, io_key), FIELD(16, io_ticket), FIELD(17, terminal),
                FIELD(18, mpi), FIELD(19, nodes), FIELD(20, node_tasks), FIELD(21, ranks),
                FIELD(22, node), FIELD(23, gpu_bind), FIELD(25, limits), FIELD(26, input),
                FIELD(27, input_rank), FIELD(28, open_mode), FIELD(29, gpus), FIELD(30, memory),
                FIELD(31, time_limit), FIELD(32, kill_wait), FIELD(33, task_cpus),
                FIELD(34, task_mems), FIELD(35, task_notes), FIELD(36, mems_preferred),
                FIELD(37, std_in))
  [[nodiscard]] std::uint32_t rank(std::uint32_t task) const {
    return task < ranks.size() ? ranks[task] : first_rank + task;
  }
};

}  // namespace gantry::runtime
