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
#include "common/job/job_modes.h"
#include "common/job/job_parts.h"
#include "common/job/job_shape.h"
#include "common/job/mail.h"
#include "common/job/placement.h"
#include "common/job/process_limits.h"
#include "common/resources/resources.h"
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
constexpr auto enum_names(DependencyKind) {
  using enum DependencyKind;
  return std::array<std::pair<DependencyKind, std::string_view>, 6>{{{after, "after"},
                                                                     {after_any, "afterany"},
                                                                     {after_ok, "afterok"},
                                                                     {after_notok, "afternotok"},
                                                                     {after_corr, "aftercorr"},
                                                                     {singleton, "singleton"}}};
}

struct Dependency {
  DependencyKind kind = DependencyKind::after_any;
  JobId job{};                              // job, array, or array element's own id
  std::optional<std::uint32_t> array_task;  // one element of array `job`
  Duration delay{};                         // after:ID+MINUTES only
  friend bool operator==(const Dependency&, const Dependency&) = default;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "kind", s.kind);
    v(2, "job", s.job);
    v(3, "array_task", s.array_task);
    v(4, "delay", s.delay);
  }
};

enum class JobKind : std::uint8_t {
  batch = 1,       // has a script, run on the first node
  allocation = 2,  // galloc / grun outside a job: holds nodes for steps, ended by its owner
};
constexpr auto enum_names(JobKind) {
  return std::array<std::pair<JobKind, std::string_view>, 2>{
      {{JobKind::batch, "batch"}, {JobKind::allocation, "allocation"}}};
}

inline constexpr std::uint32_t kMaxHetParts = 128;  // as in Slurm

// One component of a heterogeneous job: a job of its own that starts together with the others.
// Their ids follow each other; the first one, the leader, runs the script.
struct HetPart {
  JobId leader{};
  std::uint32_t offset = 0;  // from the leader: 0 is the leader itself
  std::uint32_t size = 0;    // components in all, 2..kMaxHetParts
  friend bool operator==(const HetPart&, const HetPart&) = default;
  [[nodiscard]] JobId member(std::uint32_t at) const { return JobId(leader.value() + at); }
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "leader", s.leader);
    v(2, "offset", s.offset);
    v(3, "size", s.size);
  }
};

// A replica of a service: a job that the controller made from the service's document.
struct ReplicaOf {
  std::string service;
  std::string version;
  std::uint64_t revision = 0;  // of what the version runs, see ctld/core/services
  std::uint32_t shape = 0;     // of the version's
  std::uint16_t port = 0;      // on which its server listens in the job
  friend bool operator==(const ReplicaOf&, const ReplicaOf&) = default;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "service", s.service);
    v(2, "version", s.version);
    v(3, "revision", s.revision);
    v(4, "shape", s.shape);
    v(5, "port", s.port);
  }
};

struct JobSpec {
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
  // Words of a client or a record of an older release, which has no fields from 36 on. Whoever
  // reads a spec has the fields instead: from_older_form() leaves here only what it cannot
  // understand.
  std::vector<std::string> older_given;
  std::string priority_class;   // "" = the tenant's default
  std::string tenant_class;     // a class of the tenant's own; "" = none
  std::string reservation;      // "" = none
  std::string checkpoint_file;  // pattern; touched when the job has saved its work; "" = none
  std::optional<HetPart> het;   // the controller's word, never a client's
  MailRequest mail;
  std::string wckey;                         // recorded with the job; "" = none
  std::optional<Distribution> distribution;  // unset: not asked for
  std::string submit_dir;   // where the command ran, if --chdir named another; "" = work_dir
  std::string script_path;  // the file of the script, absolute; "" = standard input or --wrap
  GivenOptions given;
  std::optional<Duration> time_min;  // the limit may be lowered to this for an earlier start
  ProcessLimits limits;
  GpuNames gpu_names = GpuNames::uuid;
  bool no_kill = false;  // it goes on without a node that is lost, unless that runs its script
  bool network_named = false;      // the job asked for `network`, so it gets that or does not start
  std::string network_profile;     // with network `job`; "" = the tenant's default
  std::uint64_t network_rate = 0;  // bits per second each way, of each node; 0 = no limit
  std::uint64_t io_rate = 0;       // bytes per second of each disk, reads and writes; 0 = no limit
  std::map<std::string, std::string> labels{};     // KEY=VALUE, for reports, rules and selectors
  std::vector<SecretUse> secrets{};                // of its tenant
  std::vector<std::string> identity_audiences{};   // whom its identity tokens are for
  std::optional<Sandbox> sandbox{};                // unset: the tenant's choice; resolved at submit
  std::optional<WorkType> work_type{};             // for reports and rules
  std::vector<DatasetUse> datasets{};              // that its tenant may use
  std::vector<StageCopy> stage_in{}, stage_out{};  // before its script starts, after it has ended
  std::optional<ReplicaOf> replica{};              // the controller's word, never a client's
  void from_older_form();                          // called by whoever decodes; see older_given.h
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "kind", s.kind);
    v(2, "name", s.name);
    v(3, "partition", s.partition);
    v(4, "account", s.account);
    v(5, "comment", s.comment);
    v(6, "shape", s.shape);
    v(7, "time_limit", s.time_limit);
    v(8, "unlimited_time", s.unlimited_time);
    v(9, "begin", s.begin);
    v(10, "deadline", s.deadline);
    v(11, "dependencies", s.dependencies);
    v(12, "any_dependency", s.any_dependency);
    v(13, "cancel_on_invalid_dependency", s.cancel_on_invalid_dependency);
    v(14, "array", s.array);
    v(15, "nice", s.nice);
    v(16, "priority", s.priority);
    v(17, "hold", s.hold);
    v(18, "requeue", s.requeue);
    v(19, "warn_signal", s.warn_signal);
    v(20, "work_dir", s.work_dir);
    v(21, "std_in", s.std_in);
    v(22, "std_out", s.std_out);
    v(23, "std_err", s.std_err);
    v(24, "open_mode", s.open_mode);
    v(25, "container", s.container);
    v(26, "network", s.network);
    v(27, "submit_host", s.submit_host);
    v(28, "submit_line", s.submit_line);
    v(29, "script_args", s.script_args);
    v(30, "given", s.older_given);
    v(31, "priority_class", s.priority_class);
    v(32, "tenant_class", s.tenant_class);
    v(33, "reservation", s.reservation);
    v(34, "checkpoint_file", s.checkpoint_file);
    v(35, "het", s.het);
    v(36, "mail", s.mail);
    v(37, "wckey", s.wckey);
    v(38, "distribution", s.distribution);
    v(39, "submit_dir", s.submit_dir);
    v(40, "script_path", s.script_path);
    v(41, "given_options", s.given);
    v(42, "time_min", s.time_min);
    v(43, "limits", s.limits);
    v(44, "gpu_names", s.gpu_names);
    v(45, "no_kill", s.no_kill);
    v(61, "network_profile", s.network_profile);
    v(62, "network_rate", s.network_rate);
    v(63, "network_named", s.network_named);
    v(71, "io_rate", s.io_rate);
    v(72, "labels", s.labels);
    v(73, "secrets", s.secrets);
    v(74, "identity_audiences", s.identity_audiences);
    v(75, "sandbox", s.sandbox);
    v(76, "work_type", s.work_type);
    v(85, "datasets", s.datasets);
    v(86, "stage_in", s.stage_in);
    v(87, "stage_out", s.stage_out);
    v(88, "replica", s.replica);
  }
};

}  // namespace gantry
