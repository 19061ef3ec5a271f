// The changes that the core tells the scheduler's replica in each turn, in order. Values only.
//
// The replica never sees a job that may not start now: held jobs, open dependencies, begin times
// and array limits stay in the core, which queues a job when it becomes eligible.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/fields.h"
#include "common/job/job_spec.h"
#include "common/resources/gpu.h"
#include "common/special_members.h"
#include "common/time/recurrence.h"
#include "common/time/time.h"
#include "common/types.h"
#include "ctld/sched/grant.h"
#include "ctld/sched/tenancy.h"

namespace gantry::sched {

struct GpuView {            // a GPU that may be given to jobs
  std::uint16_t index = 0;  // GpuDevice::index
  std::int32_t numa = -1;   // -1 = not known
  bool mig = false;         // only slices of it are given to jobs
  std::string model;
  std::vector<std::uint32_t> nvlinks;  // number of links to each GPU of the node, by index
  bool by_hand = false;            // MIG slices are made by hand: jobs get only slices that exist
  std::vector<MigSlice> slices{};  // if by_hand: the slices that exist
  friend bool operator==(const GpuView&, const GpuView&) = default;
};

struct NodeChanged {  // new, or changed; keyed by id
  GANTRY_SPECIAL_MEMBERS(NodeChanged)
  NodeId node;
  std::string name;
  bool available = false;           // up and open: may take new work
  std::vector<std::uint16_t> cpus;  // logical CPUs for jobs, sorted
  std::int64_t memory = 0;
  std::int64_t scratch = 0;
  std::uint32_t gpus = 0;            // whole GPUs for jobs: sound, MIG mode off
  std::uint32_t gpus_when_well = 0;  // including GPUs that are out of service now; at least `gpus`
  std::vector<GpuView> devices;      // by index; empty = 0..gpus-1, all alike
  std::vector<MigGeometry> geometries;  // of GPU models that are in MIG mode
  std::vector<std::string> features;    // sorted
  std::uint32_t sockets = 1;            // cpus are divided among sockets in order
  std::uint32_t flavor = 0;             // index into Tenancy::flavors; 0 = no flavor
  std::string gpu_model;                // lower case, "a100"; "" = none or not known
  std::vector<std::uint32_t> domains;   // by topology level: the node's domain; kNoIndex = none
  std::vector<std::string> taints;      // sorted
  bool gpu_jobs_only = false;           // jobs without GPUs are kept off
  bool gpu_sharing = false;             // its GPUs may be shared by jobs of one tenant
  GresAmounts gres{};                   // by PartitionChanged::gres_names
  bool spread = false;                  // the emptiest node is chosen first
};

struct PartitionChanged {
  PartitionId partition;
  std::string name;
  bool up = true;
  std::uint32_t priority = 0;
  std::vector<NodeId> nodes;                // in configuration order
  std::int64_t default_memory_per_cpu = 0;  // bytes; 0 = equal part of the node's memory
  bool exclusive_nodes = false;
  std::uint32_t quota_node = kNoIndex;  // its tenant's, in Tenancy::nodes
  std::vector<std::string>
      gres_names;  // names of the whole cluster, sorted; at most kMostGresNames
};

struct TenancyChanged {  // the whole tenancy; sent before partitions and nodes that refer to it
  TenancyPtr tenancy;
};

struct ShareChanged {  // new, or changed
  ShareId share;
  std::optional<ShareId> parent;  // unset: this is a tenant
  std::uint32_t shares = 1;
  DecayedUsage usage;
};

// Everything that can influence where and when a job fits; equal ones form one class.
struct ClassKey {
  PartitionId partition;
  JobShape shape;
  std::optional<Duration> time_limit;  // resolved; unset = unlimited
  std::uint32_t priority_class = 0;    // index into Tenancy::classes
  std::string reservation;             // name of the reservation; "" = none
  std::optional<HetPart> het{};        // a component is alone in its class
  // The limit may be lowered to this if that lets the job start earlier. Plans use the least limit;
  // a job that starts gets the longest for which its place is free.
  std::optional<Duration> time_min{};
  [[nodiscard]] std::optional<Duration> least_limit() const {
    return time_min && (!time_limit || *time_min < *time_limit) ? time_min : time_limit;
  }
  friend bool operator==(const ClassKey&, const ClassKey&) = default;
};

struct JobQueued {  // eligible now; sent again with other numbers when they change
  JobId job;
  ClassKey key;
  std::int64_t priority = 0;    // higher first
  Instant queued_since{};       // then earlier first, then lower id
  std::uint32_t startable = 1;  // array: elements that may start now
  std::int32_t rank = 0;  // value of its priority class, raised while the job waits; higher first
  std::optional<ShareId> share{};  // the user's leaf; unset: not in a tenant
  bool raised = false;  // true if the rank is above its class's value because the job has waited
  std::int64_t own_priority = 0;  // the part of priority that counts only inside its tenant
  std::uint32_t namesake = 0;     // see NamesakesApart; 0: the job has none
};

// Many jobs of one class, for a replica that is built from scratch: their class is told once.
struct JobsQueued {
  struct Job {  // as in JobQueued
    JobId job;
    std::int64_t priority = 0;
    Instant queued_since{};
    std::uint32_t startable = 1;
    std::int32_t rank = 0;
    std::optional<ShareId> share{};
    bool raised = false;
    std::int64_t own_priority = 0;
    std::uint32_t namesake = 0;
  };
  ClassKey key;
  std::vector<Job> jobs;
};

struct JobUnqueued {
  JobId job;
};

struct JobPlaced {  // a fact: the core has checked it again
  JobId job;        // the element's own id
  std::vector<NodeGrant> grants;
  std::optional<Instant> ends_by;  // start + limit; unset = unlimited
  bool exclusive = false;
  // The other members: whose job this is, and what preempting it would cost.
  PartitionId partition{};
  std::uint32_t priority_class = 0;
  std::int32_t rank = 0;  // of its class, without raises
  std::optional<ShareId> share{};
  Instant started{};                    // when it was placed, or since when it runs
  std::optional<Instant> checkpoint{};  // newest one of this attempt
  std::uint32_t preemptions = 0;        // preemptions so far
  bool requeue = true;                  // true if it may be requeued
  bool leaving = false;  // true if it is finishing: it ends by itself and cannot be a victim
  NodeSharing sharing = NodeSharing::any;  // from its shape
  std::string anti_affinity{};             // from its shape
  std::uint32_t namesake = 0;              // see NamesakesApart
};

// A time window on nodes in which only jobs that name this reservation may run; in a maintenance
// window no job may run. Sent again when the window changes.
struct ReservationChanged {
  std::string name;
  std::vector<NodeId> nodes;
  Instant from{}, until{};
  std::vector<std::uint32_t> quota_nodes;  // tenants that may use it; users are checked at submit
  bool maintenance = false;
  bool removed = false;
  // The next occurrences of a recurring reservation, in order. Jobs that name it run in the present
  // occurrence; for all others the later occurrences are closed windows, too.
  std::vector<TimeSpan> later{};
};

struct JobLimitChanged {
  JobId job;
  std::optional<Instant> ends_by;
};

struct NodeReleased {  // the job holds this node no more
  JobId job;
  NodeId node;
};

// Jobs of one user and one name are namesakes. They share a number, which is not 0 and has 31 bits.
// If two numbers form one of these pairs, their jobs are kept off each other's nodes as long as
// other nodes are free. This change replaces all earlier pairs.
using NamesakePair = std::pair<std::uint32_t, std::uint32_t>;  // the smaller number first
struct NamesakesApart {
  std::vector<NamesakePair> pairs;  // sorted, each once
};

struct Change : std::variant<NodeChanged, PartitionChanged, JobQueued, JobUnqueued, JobPlaced,
                             JobLimitChanged, NodeReleased, TenancyChanged, ShareChanged,
                             ReservationChanged, JobsQueued, NamesakesApart> {
  using variant::variant;
  GANTRY_SPECIAL_MEMBERS(Change)
};

}  // namespace gantry::sched
