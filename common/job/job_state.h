// The states of jobs and nodes. These internal states have public names in tables.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/fields.h"
#include "common/resources/gpu_usage.h"
#include "common/time/time.h"

namespace gantry {

enum class Phase : std::uint8_t {
  queued = 1,
  starting = 2,
  running = 3,
  finishing = 4,
  ended = 5,
  suspended = 6,  // only in rows: running, and frozen on its nodes
};
GANTRY_NAMES(Phase, {queued, "queued"}, {starting, "starting"}, {running, "running"},
             {finishing, "finishing"}, {ended, "ended"}, {suspended, "suspended"})

// How a job ended (phase ended), or is going to end (phase finishing).
enum class Outcome : std::uint8_t {
  completed = 1,      // exit 0
  failed = 2,         // exit code or signal of its own
  cancelled = 3,      // by a person, or by a dependency that can never be met
  timeout = 4,        // over its time limit
  out_of_memory = 5,  // killed by its own memory limit
  node_fail = 6,      // node, node daemon state or shim lost
  launch_failed = 7,  // never started because of the node: prolog, runtime (BF)
  deadline = 8,       // could not end before its deadline
  preempted = 9,      // had to leave for another job, and was not requeued
};
GANTRY_NAMES(Outcome, {completed, "completed"}, {failed, "failed"}, {cancelled, "cancelled"},
             {timeout, "timeout"}, {out_of_memory, "out_of_memory"}, {node_fail, "node_fail"},
             {launch_failed, "launch_failed"}, {deadline, "deadline"}, {preempted, "preempted"})

// Why a queued job waits. Names are Slurm's where Slurm has the reason.
enum class Reason : std::uint8_t {
  none = 0,
  priority = 1,         // other jobs come first; a = how many
  resources = 2,        // head of its queue; a = nodes that fit now, b = nodes needed
  dependency = 3,       // subject = what is still open, "afterok:12,afterany:13"
  never_satisfied = 4,  // has a dependency that can never be met; subject names it
  begin_time = 5,       // a = begin time, microseconds since the epoch
  held_user = 6,
  held_admin = 7,             // subject = who and why
  array_task_limit = 8,       // a = tasks running, b = the limit %N
  partition_down = 9,         // subject = partition
  partition_node_limit = 10,  // a = nodes requested, b = nodes allowed
  partition_time_limit = 11,  // a = minutes requested, b = minutes allowed
  nodes_unavailable = 12,     // required nodes are down or drained; subject = their names
  requeued = 13,  // waits until the back-off after a failed start is over; a = until, microseconds
  bad_constraints = 14,     // at present no node of the partition has what it asks for
  launch_failed_held = 15,  // held because its start failed too often; subject = the last cause
  deadline = 16,
  // These reasons concern a tenant. The subject names resource and flavor ("gpu of a100"); amounts
  // have the units of common/resources/resources.h.
  tenant_quota = 17,  // nominal plus borrowing limit is used up; a = used + asked, b = limit
  cohort_quota = 18,  // nothing left to borrow; subject also says who holds it; a = asked, b = left
  tenant_jobs = 19,   // a = running jobs, b = limit
  reclaiming = 20,    // waits for jobs that are being ended for it; a = how many, b = until (us)
  planned = 21,       // fits, but would delay a planned start; subject = id of the planned job
  topology = 22,      // no domain has room; a = nodes in the best one, b = needed; subject = level
  anti_affinity = 23,  // subject = key and level
  reservation = 24,    // its reservation has not begun, or has no free nodes; subject = name
  maintenance = 25,    // would still run when it begins; subject = name, a = from (us)
  tainted = 26,        // subject = taints that it does not tolerate
  // A GPU is being emptied so that it can be partitioned into slices; subject = node, b = GPU, a =
  // free from (us; 0 = unknown).
  mig_repartition = 27,
  // The budget has too little left; a = the job's highest cost, b = what is left, both millionths;
  // subject = the budget.
  budget = 28,
  licenses = 29,   // a = free, b = asked; subject = which
  no_tenant = 30,  // tenants exist, and the partition belongs to none; subject = partition
  account_not_allowed = 31,  // a list of the partition excludes it; subject = partition
  qos_not_allowed = 32,      // a list of the partition excludes its priority class
  // A limit of use of its QOS, its account or its user; subject = Slurm's name of the reason, ": "
  // and a clause for people; a = what there would be, b = the limit.
  use_limit = 33,
  special_exit = 34,  // held after a requeue that called its end special; subject = who and why
  secret_missing =
      35,  // its tenant does not have the secret any more; subject = NAME or NAME@VERSION
  dataset_denied = 40,  // its tenant may not use this dataset any more; subject = its name
};
GANTRY_NAMES(Reason, {none, "None"}, {priority, "Priority"}, {resources, "Resources"},
             {dependency, "Dependency"}, {never_satisfied, "DependencyNeverSatisfied"},
             {begin_time, "BeginTime"}, {held_user, "JobHeldUser"}, {held_admin, "JobHeldAdmin"},
             {array_task_limit, "JobArrayTaskLimit"}, {partition_down, "PartitionDown"},
             {partition_node_limit, "PartitionNodeLimit"},
             {partition_time_limit, "PartitionTimeLimit"}, {nodes_unavailable, "ReqNodeNotAvail"},
             {requeued, "BeginTime"}, {bad_constraints, "BadConstraints"},
             {launch_failed_held, "launch_failed_requeued_held"}, {deadline, "DeadLine"},
             {tenant_quota, "TenantQuota"}, {cohort_quota, "CohortQuota"},
             {tenant_jobs, "TenantMaxJobs"}, {reclaiming, "Reclaiming"}, {planned, "Planned"},
             {topology, "Topology"}, {anti_affinity, "AntiAffinity"}, {reservation, "Reservation"},
             {maintenance, "ReqNodeNotAvail"}, {tainted, "Taints"},
             {mig_repartition, "MigRepartition"}, {budget, "Budget"}, {licenses, "Licenses"},
             {no_tenant, "InvalidAccount"}, {account_not_allowed, "AccountNotAllowed"},
             {qos_not_allowed, "QOSNotAllowed"}, {use_limit, "AssociationResourceLimit"},
             {special_exit, "JobHeldUser"}, {secret_missing, "SecretMissing"},
             {dataset_denied, "DatasetDenied"})

struct Verdict {
  Reason reason = Reason::none;
  std::int64_t a = 0;  // meaning depends on the reason
  std::int64_t b = 0;
  std::string subject;
  friend bool operator==(const Verdict&, const Verdict&) = default;
  GANTRY_FIELDS(FIELD(1, reason), FIELD(2, a), FIELD(3, b), FIELD(4, subject))
};

// How long a job waited for one reason.
struct WaitPart {
  Reason reason = Reason::none;
  Duration length{};
  friend bool operator==(const WaitPart&, const WaitPart&) = default;
  GANTRY_FIELDS(FIELD(1, reason), FIELD(2, length))
};

// The exit of a job or task: an exit code, or the signal that ended it (the code is then 0).
struct ExitStatus {
  std::int32_t code = 0;    // 0..255
  std::int32_t signal = 0;  // 0 or 1..64
  friend bool operator==(const ExitStatus&, const ExitStatus&) = default;
  GANTRY_FIELDS(FIELD(1, code), FIELD(2, signal))
};

// What a job used on one node, in all its processes; read from its cgroup and its GPUs.
struct Usage {
  std::int64_t cpu_user_us = 0;
  std::int64_t cpu_system_us = 0;
  std::int64_t memory_peak_bytes = 0;
  std::int64_t io_read_bytes = 0;
  std::int64_t io_write_bytes = 0;
  std::vector<GpuUsage> gpus;  // for whole attempts only
  friend bool operator==(const Usage&, const Usage&) = default;
  GANTRY_FIELDS(FIELD(1, cpu_user_us), FIELD(2, cpu_system_us), FIELD(3, memory_peak_bytes),
                FIELD(4, io_read_bytes), FIELD(5, io_write_bytes), FIELD(6, gpus))
};

// The state of a node is its health (as observed) combined with its intent (what the operator
// wants). Whether it is idle, mixed or allocated is computed from the placements and never stored.
enum class NodeHealth : std::uint8_t {
  down = 0,
  up = 1,
  lost = 2
};  // down: never seen, or stopped
GANTRY_NAMES(NodeHealth, {down, "down"}, {up, "up"}, {lost, "lost"})
enum class NodeIntent : std::uint8_t { open = 0, drain = 1, closed = 2 };
GANTRY_NAMES(NodeIntent, {open, "open"}, {drain, "drain"}, {closed, "closed"})

}  // namespace gantry
