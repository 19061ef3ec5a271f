// Config: one checked, immutable description of the cluster, which load() reads from gantry.yaml.
//
// Both daemons and the commands read the same file; each uses its part. A wrong value is refused
// with file, line, column, field, and what is allowed; an unknown key is an error.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/resources/resources.h"
#include "common/result.h"
#include "common/special_members.h"
#include "common/time/time.h"
#include "config/gate_config.h"

namespace gantry {

// Whether jobs of one tenant may share a GPU of a node, and how. mps: through one NVIDIA daemon for
// each tenant and GPU; time_slicing: only by the driver's time slices.
enum class GpuSharing : std::uint8_t { none, mps, time_slicing };
// Whether a GPU's memory is overwritten before another tenant gets it. when_possible: a node
// without libcuda reports this and starts the job all the same; required: such a node does not
// start the job.
enum class GpuScrubbing : std::uint8_t { when_possible, required, off };

// A node as the operator declares it. What noded reports is compared with it: a node that has less
// than declared is drained with a reason.
struct NodeConfig {
  std::string name;
  std::string address;     // host:port of noded, for steps; "" = the one with which it registers
  std::uint32_t cpus = 1;  // logical CPUs for jobs
  std::optional<std::vector<std::uint16_t>> cpu_ids;  // unset = 0 .. cpus-1
  std::int64_t memory = 0;                            // bytes for jobs
  std::int64_t scratch = 0;                           // bytes
  std::uint32_t gpus = 0;
  std::string gpu_model;  // lower case, "a100"; "" = none, or not declared
  GpuSharing gpu_sharing = GpuSharing::none;
  std::uint32_t gpu_shards = 0;  // parts of each GPU that --gres=shard counts; 0 = none
  bool mig_by_hand = false;  // the site makes its MIG slices: Gantry neither makes nor destroys any
  std::vector<std::string> gres;      // other resources, see gres.h
  std::vector<std::string> features;  // sorted
};

struct PartitionConfig {
  std::string name;
  std::vector<std::string> nodes;  // names, expanded
  bool is_default = false;
  bool up = true;
  bool accepts_jobs = true;
  std::uint32_t priority = 0;            // higher is considered first
  std::optional<Duration> default_time;  // unset = max_time
  std::optional<Duration> max_time;      // unset = unlimited
  std::optional<std::uint32_t> max_nodes;
  std::uint32_t min_nodes = 1;
  std::optional<std::int64_t> default_memory_per_cpu;  // bytes; unset = equal part of the node
  bool allow_host_network = false;
  bool host_network_by_default = false;  // default for jobs that do not choose
  bool exclusive_nodes = false;          // every job gets whole nodes
  bool admins_only = false;              // administrators alone submit to it
  bool reservation_only = false;         // every job has to name a reservation
  std::string qos;                       // a priority class whose limits its jobs keep; "" = none
  std::string billing_weights;           // weights of billing units; "" = cores
  // These lists decide who may use the partition; an empty list sets no condition. For accounts,
  // and for qos, at most one of the two lists may be set.
  std::vector<std::string> allow_accounts, deny_accounts;  // tenants and projects
  std::vector<std::string> allow_groups;                   // groups of the operating system
  std::vector<std::string> allow_qos, deny_qos;            // priority classes
};

enum class LostNodePolicy : std::uint8_t { wait, fence };
// What happens to a job if policy_hook gives no answer.
enum class HookFailure : std::uint8_t { refuse, accept };

// How packets of jobs' networks go from node to node: noded/network/nodes_link.h.
enum class NodeTransport : std::uint8_t { vxlan, wireguard, routed };

struct ControllerConfig {
  std::string host = "127.0.0.1";
  std::uint16_t port = 6870;
  std::string state_dir = "/var/lib/gantry/ctld";
  std::string public_key_file = "/etc/gantry/ctld.pub";  // Z85, for clients and nodes
  std::string secret_key_file = "/etc/gantry/ctld.key";  // 0600
  std::vector<std::string> admins{"root"};               // login names
  bool allow_munge = true;
  bool job_networks = true;  // see options.cc
  NodeTransport job_network_transport = NodeTransport::vxlan;
  // Ranges for addresses of jobs: a prefix of 48 bits for IPv6, and of 10 bits for IPv4.
  std::string job_network_prefix = "fd67:616e:7472::/48";
  std::string job_network_block = "100.64.0.0/10";
  std::vector<std::string> login_nodes;  // nodes trusted to tell who a user is; see options.cc
  Duration heartbeat = seconds(5);       // time between two reports of a node
  Duration node_timeout = seconds(30);   // silence after which a node is lost
  LostNodePolicy lost_node_policy = LostNodePolicy::wait;
  Duration fence_after = minutes(10);    // with policy fence
  Duration kill_wait = seconds(30);      // time from SIGTERM to SIGKILL
  Duration min_job_age = seconds(300);   // time for which ended jobs stay in the queue listing
  Duration start_timeout = seconds(60);  // a node that does not confirm a start is drained
  std::uint32_t max_requeues = 16;       // after this many requeues the job is held
  std::uint32_t max_jobs = 2'000'000;    // queued and active, an array counts as one
  // Limits for one user who is no operator:
  std::uint32_t max_user_jobs = 1'000'000;  // queued and active, array tasks one by one
  // Bytes stored for the user's jobs that the controller knows.
  std::int64_t max_user_bytes = 256LL << 20;
  std::uint32_t max_user_keys = 100;  // registered keys
  std::uint32_t max_user_triggers = 100;
  std::uint32_t max_job_steps = 40'000;  // steps of one attempt; like Slurm's MaxStepCount
  std::uint32_t max_array_tasks = 1'000'000;
  std::uint32_t max_script_bytes = 4u << 20;
  std::uint32_t backfill_depth = 1000;  // classes that are considered after the first blocked job
  std::int64_t store_map = 64LL << 30;  // bytes of address space for the job store; grows
  std::int64_t store_map_max = 1LL << 40;
  bool one_cohort = true;                   // tenants whose documents name no cohort share one
  Duration balance{};                       // see options.cc
  Duration oldest_first_after = hours(72);  // see options.cc
  Duration keep_apart = hours(24);          // see options.cc
  Duration fair_share_half_life = hours(7 * 24);  // half-life of usage in the fair share
  // Weights of the multifactor priority, as Slurm has it; if all are 0, it is off.
  std::uint32_t priority_weight_age = 0;
  std::uint32_t priority_weight_fairshare = 0;
  std::uint32_t priority_weight_job_size = 0;
  std::uint32_t priority_weight_partition = 0;
  std::uint32_t priority_weight_class = 0;
  Duration priority_max_age = hours(7 * 24);  // after this time the age counts in full
  // Time between two computations of the priority of waiting jobs.
  Duration priority_period = minutes(5);
  std::string metrics_host = "127.0.0.1";  // HTTP: /metrics and /usage
  std::uint16_t metrics_port = 0;          // 0 = none
  std::string metrics_tokens =
      "/etc/gantry/metrics.tokens";              // tokens of those who may read metrics; mode 0600
  Duration max_token_lifetime = hours(30 * 24);  // for scontrol token
  std::uint32_t max_user_connections = 1'024;    // connections of one user at a time; 0 = no limit
  std::uint32_t max_user_requests = 1'000;       // requests of one user per second; 0 = no limit
  bool user_triggers = false;           // programs of strigger run on the controller's machine
  std::string mail_program;             // sendmail, for --mail-type; "" = no mail is sent
  std::string usage_events;             // file that usage is appended to; "" = none
  std::vector<std::string> gates;       // login names of gates, beside operators
  std::uint32_t service_port = 20'000;  // the first port of nodes for replicas of services
  std::string usage_webhook;            // http://HOST:PORT/PATH that usage is sent to; "" = none
  std::string policy_hook;              // program that decides about each submit; "" = none
  Duration policy_hook_timeout = seconds(5);
  HookFailure policy_hook_failure = HookFailure::refuse;
  std::vector<std::string> metrics_labels;  // keys of labels by which jobs are counted
  std::vector<std::string> report_labels;   // keys of labels with separate sums in the ledger
  std::string identity_issuer;  // https://HOST[/PATH]: who signs tokens; "" = none are made
  Duration identity_lifetime = hours(1);        // lifetime of a token
  Duration identity_key_time = hours(30 * 24);  // for which one key signs tokens
  // Tokens of another issuer that are credentials of people (OpenID Connect); "" = none are.
  std::string oidc_issuer;
  std::string oidc_audience;
  std::string oidc_keys;  // file with its JSON Web Key Set
  std::string oidc_user_claim = "preferred_username";
  std::string oidc_groups_claim = "groups";
};

struct NodedConfig {
  std::string state_dir = "/var/lib/gantry/noded";
  std::string run_dir = "/run/gantry";
  std::string key_file = "/etc/gantry/noded.key";
  std::string listen_host = "0.0.0.0";
  std::uint16_t listen_port = 6871;
  // Tried in order; "process" only if it is named here.
  std::vector<std::string> runtimes{"crun", "runc"};
  std::string gvisor = "runsc";          // runtime of the sandbox gvisor; "none" = there is none
  std::string vm_runtime;                // OCI runtime that starts virtual machines; "" = none
  std::vector<std::string> image_check;  // command that checks images; empty = no check
  std::string cgroup_root = "gantry";    // below the cgroup mount, or below the daemon's own cgroup
  std::vector<std::string> image_dirs;   // local images must be below these; empty = anywhere
  std::string image_cache_dir = "/var/lib/gantry/images";
  std::int64_t image_cache_size = std::int64_t{100} << 30;  // bytes of all unpacked images
  std::int64_t image_size = std::int64_t{50} << 30;         // bytes of one image
  std::uint32_t image_files = 2'000'000;
  // Besides home and work_dir, if the root is the host's view.
  std::vector<std::string> writable_paths;
  std::vector<std::string> storage;
  Duration stage_timeout = hours(2);
  // Name servers of jobs whose profile has the resolvers, as addresses; empty = those of the
  // machine's /etc/resolv.conf.
  std::vector<std::string> resolvers;
  std::uint32_t ready_networks = 64;  // networks of jobs that are made in advance
  std::string cni;                    // a list of CNI plugins for each job's network; "" = none
  std::vector<std::string> cni_dirs{"/usr/lib/cni", "/opt/cni/bin"};  // of the plugins
  // HTTP: /metrics of the node and its jobs; port 0 = none.
  std::string metrics_host = "127.0.0.1";
  std::uint16_t metrics_port = 0;
  std::string metrics_tokens =
      "/etc/gantry/metrics.tokens";  // tokens of those who may read metrics; mode 0600
  std::string prolog;                // run as root before and after each job; "" = none
  std::string epilog;
  bool allow_root_jobs = false;
  std::int64_t tmp_bytes = 0;  // size of a job's private /tmp; 0 = half its memory
  std::uint32_t pids_max = 4096;
  std::string gpu_library = "libnvidia-ml.so.1";  // NVML; "none" = do not look for GPUs
  std::string gpu_root = "/";                     // prefix of the driver's dev, proc and sys
  std::string gres_command;  // command that lists the node's other resources; "" = none
  std::string mps_control = "nvidia-cuda-mps-control";  // by name on PATH, or a path
  Duration gpu_sample = seconds(5);  // time between two samples of what jobs do on their GPUs
  GpuScrubbing gpu_scrub = GpuScrubbing::when_possible;
  // The driver's library, for scrubbing; %n as in gpu_library.
  std::string cuda_library = "libcuda.so.1";
  std::string gpu_probe;  // program that checks GPUs before and after each job; "" = none
  std::vector<std::string> cdi_dirs{"/etc/cdi", "/var/run/cdi"};  // later ones have precedence
  // For noded/neighbours: which jobs slow down others on the node. Thresholds are percent.
  bool neighbours = true, neighbour_throttle = true;
  Duration neighbour_sample = seconds(3), neighbour_hold = seconds(60);
  std::uint32_t neighbour_cpu = 20, neighbour_memory = 10, neighbour_disk = 80,
                neighbour_network = 70, neighbour_memory_bandwidth = 80;
  std::int64_t memory_bandwidth = 0;  // bytes per second of all memory; 0 = not known
};

struct Config {
  GANTRY_SPECIAL_MEMBERS(Config)
  std::string cluster = "gantry";
  ControllerConfig controller;
  NodedConfig noded;
  GateConfig gate;
  std::vector<NodeConfig> nodes;            // in file order
  std::vector<PartitionConfig> partitions;  // at least one; exactly one default
  std::vector<std::string> licenses;        // "NAME:N" for the whole cluster; see gres.h
  std::string path;                         // of the file
};

// Reads and checks a file. Reading stops at the first error, "FILE:LINE:COL:
// partitions[0].max_time: ...".
Result<Config> load_config(const std::string& path);
Result<Config> parse_config(const std::string& text, const std::string& name_for_errors);

// The path $GANTRY_CONF; else ~/.config/gantry/gantry.yaml if it exists; else
// /etc/gantry/gantry.yaml.
std::string default_config_path();

// Every option with its value in force, by dotted name ("controller.kill_wait" -> "30s").
std::map<std::string, std::string> describe(const Config& config);

}  // namespace gantry
