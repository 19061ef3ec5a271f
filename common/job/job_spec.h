// JobSpec: what a user asked for; it does not change once it is acknowledged. It is stored once per
// job (or per array) in the `jobs` table; script and environment are stored apart, by content hash.
//
// Unset is std::nullopt; unlimited time is TimeLimit::unlimited. Paths are absolute, or relative to
// work_dir. Output patterns (%j %A %a %x %u %N %t) are expanded on the node.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/job/distribution.h"
#include "common/job/given_options.h"
#include "common/job/job_access.h"
#include "common/job/job_parts.h"
#include "common/job/job_shape.h"
#include "common/job/mail.h"
#include "common/job/placement.h"
#include "common/job/process_limits.h"
#include "common/resources/resources.h"
#include "common/special_members.h"
#include "common/time/time.h"
#include "common/types.h"

namespace gantry {
enum class DependencyKind : std::uint8_t {
  after = 1,        // the other has started (or been cancelled), plus delay
  after_any = 2,    // has ended
  after_ok = 3,     // has ended with exit 0
  after_notok = 4,  // has ended otherwise
  after_corr = 5,   // array element of the same index has ended with exit 0
  singleton = 6,    // no earlier job of same name and user is queued or running; job is unset
};
GANTRY_NAMES(DependencyKind, {after, "after"}, {after_any, "afterany"}, {after_ok, "afterok"},
             {after_notok, "afternotok"}, {after_corr, "aftercorr"}, {singleton, "singleton"})

struct Dependency {
  DependencyKind kind = DependencyKind::after_any;
  JobId job{};                              // job, array, or array element's own id
  std::optional<std::uint32_t> array_task;  // one element of array `job`
  Duration delay{};                         // after:ID+MINUTES only
  friend bool operator==(const Dependency&, const Dependency&) = default;
  GANTRY_FIELDS(FIELD(1, kind), FIELD(2, job), FIELD(3, array_task), FIELD(4, delay))
};

enum class JobKind : std::uint8_t {
  batch = 1,       // has a script, run on the first node
  allocation = 2,  // galloc / grun outside a job: holds nodes for steps, ended by its owner
};
GANTRY_NAMES(JobKind, {batch, "batch"}, {allocation, "allocation"})

inline constexpr std::uint32_t kMaxHetParts = 128;  // as in Slurm

// One component of a heterogeneous job: a job of its own that starts together with the others.
// Their ids follow each other; the first one, the leader, runs the script.
struct HetPart {
  JobId leader{};
  std::uint32_t offset = 0;  // offset of its id from the leader's; 0 is the leader itself
  std::uint32_t size = 0;    // number of components, 2..kMaxHetParts
  friend bool operator==(const HetPart&, const HetPart&) = default;
  [[nodiscard]] JobId member(std::uint32_t at) const { return JobId(leader.value() + at); }
  GANTRY_FIELDS(FIELD(1, leader), FIELD(2, offset), FIELD(3, size))
};

// A replica of a service: a job that the controller made from the service's document.
struct ReplicaOf {
  std::string service;
  std::string version;
  std::uint64_t revision = 0;  // revision of the service's set, see ctld/core/services
  std::uint32_t shape = 0;     // index of the version's shape
  std::uint16_t port = 0;      // port on which its server listens inside the job
  friend bool operator==(const ReplicaOf&, const ReplicaOf&) = default;
  GANTRY_FIELDS(FIELD(1, service), FIELD(2, version), FIELD(3, revision), FIELD(4, shape),
                FIELD(5, port))
};

struct JobSpec {
  GANTRY_SPECIAL_MEMBERS(JobSpec)
  JobKind kind = JobKind::batch;
  std::string name;
  std::string partition;  // "" = the default one; resolved at submit
  std::string account;    // a project of the tenant; without tenants free text
  std::string comment;
  JobShape shape;
  std::optional<Duration> time_limit;  // unset = partition default; see unlimited
  bool unlimited_time = false;         // --time=UNLIMITED, where the partition allows it
  std::optional<Instant> begin;
  std::optional<Instant> deadline;
  std::vector<Dependency> dependencies;
  bool any_dependency = false;               // "?" separator: one met is enough
  bool cancel_on_invalid_dependency = true;  // --kill-on-invalid-dep=yes|no
  std::optional<ArraySpec> array;
  std::int32_t nice = 0;                  // -10000..10000; only an admin may go below 0
  std::optional<std::uint32_t> priority;  // admin only; 0 = held
  bool hold = false;
  bool requeue = true;  // may be requeued after a node failure
  std::optional<WarnSignal> warn_signal;
  std::string work_dir;  // absolute
  std::string std_in;    // "" = /dev/null
  std::string std_out;   // pattern; "" = gantry-%j.out (%A_%a for elements)
  std::string std_err;   // "" = joined to std_out
  OpenMode open_mode = OpenMode::truncate;
  ContainerSpec container;
  std::optional<NetworkMode> network;  // unset: the partition's choice; resolved at submit
  std::string submit_host;
  // The command as typed, for gacct and scontrol show job. It stays text: it is only ever shown.
  std::string submit_line;
  std::vector<std::string> script_args;
  // Words for given options, in messages and records of older releases, which lack the fields from
  // 36 on. Readers use the fields: from_older_form() leaves here only what it cannot understand.
  std::vector<std::string> older_given;
  std::string priority_class;   // "" = the tenant's default
  std::string tenant_class;     // a class of the tenant's own; "" = none
  std::string reservation;      // "" = none
  std::string checkpoint_file;  // pattern; touched when the job has saved its work; "" = none
  std::optional<HetPart> het;   // set by the controller, never by a client
  MailRequest mail;
  std::string wckey;                         // recorded with the job; "" = none
  std::optional<Distribution> distribution;  // unset: not asked for
  std::string submit_dir;   // where the command ran, if --chdir named another; "" = work_dir
  std::string script_path;  // the file of the script, absolute; "" = standard input or --wrap
  GivenOptions given;
  std::optional<Duration> time_min;  // the limit may be lowered to this for an earlier start
  ProcessLimits limits;
  GpuNames gpu_names = GpuNames::uuid;
  bool no_kill = false;  // the job continues without a lost node, unless that node runs its script
  bool network_named = false;      // the job asked for `network`, so it gets that or does not start
  std::string network_profile;     // with network `job`; "" = the tenant's default
  std::uint64_t network_rate = 0;  // bits per second each way, of each node; 0 = no limit
  std::uint64_t io_rate = 0;       // bytes per second of each disk, reads and writes; 0 = no limit
  std::map<std::string, std::string> labels{};     // KEY=VALUE, for reports, rules and selectors
  std::vector<SecretUse> secrets{};                // secrets of its tenant
  std::vector<std::string> identity_audiences{};   // whom its identity tokens are for
  std::optional<Sandbox> sandbox{};                // unset: the tenant's choice; resolved at submit
  std::optional<WorkType> work_type{};             // only for reports and rules
  std::vector<DatasetUse> datasets{};              // datasets that its tenant may use
  std::vector<StageCopy> stage_in{}, stage_out{};  // before its script starts, after it has ended
  std::optional<ReplicaOf> replica{};              // set by the controller, never by a client
  void from_older_form();                          // called by the decoder; see older_given.h
  GANTRY_FIELDS(FIELD(1, kind), FIELD(2, name), FIELD(3, partition), FIELD(4, account),
                FIELD(5, comment), FIELD(6, shape), FIELD(7, time_limit), FIELD(8, unlimited_time),
                FIELD(9, begin), FIELD(10, deadline), FIELD(11, dependencies),
                FIELD(12, any_dependency), FIELD(13, cancel_on_invalid_dependency),
                FIELD(14, array), FIELD(15, nice), FIELD(16, priority), FIELD(17, hold),
                FIELD(18, requeue), FIELD(19, warn_signal), FIELD(20, work_dir), FIELD(21, std_in),
                FIELD(22, std_out), FIELD(23, std_err), FIELD(24, open_mode), FIELD(25, container),
                FIELD(26, network), FIELD(27, submit_host), FIELD(28, submit_line),
                FIELD(29, script_args), NAMED_FIELD(30, "given", older_given),
                FIELD(31, priority_class), FIELD(32, tenant_class), FIELD(33, reservation),
                FIELD(34, checkpoint_file), FIELD(35, het), FIELD(36, mail), FIELD(37, wckey),
                FIELD(38, distribution), FIELD(39, submit_dir), FIELD(40, script_path),
                NAMED_FIELD(41, "given_options", given), FIELD(42, time_min), FIELD(43, limits),
                FIELD(44, gpu_names), FIELD(45, no_kill), FIELD(61, network_profile),
                FIELD(62, network_rate), FIELD(63, network_named), FIELD(71, io_rate),
                FIELD(72, labels), FIELD(73, secrets), FIELD(74, identity_audiences),
                FIELD(75, sandbox), FIELD(76, work_type), FIELD(85, datasets), FIELD(86, stage_in),
                FIELD(87, stage_out), FIELD(88, replica))
};

}  // namespace gantry
