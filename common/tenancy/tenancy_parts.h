// Parts of tenants' documents: limits (sizes and numbers of jobs, and how long GPUs may be idle),
// networks, and storage.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/fields.h"
#include "common/job/job_access.h"
#include "common/resources/resources.h"
#include "common/time/time.h"

namespace gantry::tenancy {

// Defaults of its jobs, and the most that a job may ask for; not set = the partition's limits.
struct JobLimits {
  std::optional<Duration> default_time, max_time;
  std::optional<std::int64_t> default_memory_per_cpu;  // bytes
  std::optional<std::uint32_t> default_cpus;           // per task
  std::optional<Resources> max_per_job, max_per_node;  // a component of 0 = no limit
  std::optional<std::uint32_t> max_nodes;
  std::optional<bool> host_network;  // whether jobs may use --network=host; not set = no
  // Whether jobs may ask for --exclusive=tenant or =user, which keep other jobs off whole nodes
  // while only the requested cores are counted; not set = no.
  std::optional<bool> keep_others_off;
  // A job that names no --io, or no --net, gets this on each node: bytes, or bits, per second.
  std::optional<std::int64_t> default_io, default_net;
  friend bool operator==(const JobLimits&, const JobLimits&) = default;
  GANTRY_FIELDS(FIELD(1, default_time), FIELD(2, max_time), FIELD(3, default_memory_per_cpu),
                FIELD(4, default_cpus), FIELD(5, max_per_job), FIELD(6, max_per_node),
                FIELD(7, max_nodes), FIELD(8, host_network), FIELD(9, keep_others_off),
                FIELD(10, default_io), FIELD(11, default_net))
};

struct CountLimits {  // not set = no limit
  std::optional<std::uint32_t> queued_jobs, running_jobs, array_tasks, reservations;
  std::optional<std::uint32_t> queued_jobs_per_user, submits_per_minute;
  std::optional<std::uint32_t>
      service_requests;  // requests per second to all of its services, at each gate
  friend bool operator==(const CountLimits&, const CountLimits&) = default;
  GANTRY_FIELDS(FIELD(1, queued_jobs), FIELD(2, running_jobs), FIELD(3, array_tasks),
                FIELD(4, reservations), FIELD(5, queued_jobs_per_user),
                FIELD(6, submits_per_minute), FIELD(7, service_requests))
};

// How long GPUs of a running job may be idle until something is done; not set = for ever.
struct IdleGpuLimits {
  std::optional<Duration> note, warn, requeue, cancel;
  friend bool operator==(const IdleGpuLimits&, const IdleGpuLimits&) = default;
  [[nodiscard]] bool any() const { return note || warn || requeue || cancel; }
  GANTRY_FIELDS(FIELD(1, note), FIELD(2, warn), FIELD(3, requeue), FIELD(4, cancel))
};

// What jobs may reach besides their own parts, according to documents: profiles, services, and
// which of them a tenant's jobs may use.

// What the jobs of a tenant may reach. The profiles are NetworkProfiles; kBasicProfile and
// kOwnProfile exist without a document.
struct TenantNetwork {
  std::string default_profile;  // "" = kBasicProfile
  std::vector<std::string>
      profiles;  // profiles that jobs may name, besides the default one and kOwnProfile
  std::vector<std::string> services;  // NetworkServices that are part of its kBasicProfile
  friend bool operator==(const TenantNetwork&, const TenantNetwork&) = default;
  GANTRY_FIELDS(FIELD(1, default_profile), FIELD(2, profiles), FIELD(3, services))
};

// What jobs may reach besides their own parts: only what is listed.
struct NetworkProfile {
  static constexpr std::string_view kName = "NetworkProfile";
  static constexpr int kKind = 28;
  std::string name, description;
  bool same_tenant = false;  // all jobs of the same tenant whose profiles also allow this
  bool resolvers = false;    // the site's resolvers, by DNS
  bool internet = false;     // everything except private ranges, the cluster and metadata services
  std::vector<std::string> services;  // NetworkServices
  std::vector<std::string> to;        // ranges: "10.1.0.0/16 tcp/443"
  // Jobs of other tenants, "TENANT tcp/8080". Both jobs have to have a profile that allows it.
  std::vector<std::string> to_tenants, from_tenants;
  std::string proxy;  // an HTTP proxy, which knows names of hosts: "10.1.0.9 tcp/3128"; "" = none
  friend bool operator==(const NetworkProfile&, const NetworkProfile&) = default;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, description), FIELD(3, same_tenant), FIELD(4, resolvers),
                FIELD(5, internet), FIELD(6, services), FIELD(7, to), FIELD(8, to_tenants),
                FIELD(9, from_tenants), FIELD(10, proxy))
};

// A name for addresses and ports outside of the cluster's jobs: an object store, a registry.
struct NetworkService {
  static constexpr std::string_view kName = "NetworkService";
  static constexpr int kKind = 29;
  std::string name, description;
  std::vector<std::string> to;  // ranges
  friend bool operator==(const NetworkService&, const NetworkService&) = default;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, description), FIELD(3, to))
};

// The profiles that exist without a document. `own` is a job's own parts and nothing else; `basic`
// is the resolvers and the tenant's services, as far as the node has a way out.
inline constexpr std::string_view kOwnProfile = "own", kBasicProfile = "basic";

// Storage in documents: the directory of a tenant, and datasets that tenants share. Both are on the
// nodes below the directories of `noded.storage`, of which jobs see only what these documents
// grant.

struct TenantStorage {
  // A directory that each job of the tenant sees at this path, and may write to as far as its
  // user's rights go; "" = none.
  std::string path;
  ObjectStore objects;  // its part of an object store, for --stage-in and --stage-out
  // The nodes' file systems count what is in the directory under this number, and refuse more than
  // the next two members allow.
  std::optional<std::uint32_t> project;
  std::optional<std::int64_t> size;  // bytes
  std::optional<std::int64_t> files;
  friend bool operator==(const TenantStorage&, const TenantStorage&) = default;
  GANTRY_FIELDS(FIELD(1, path), FIELD(2, objects), FIELD(3, project), FIELD(4, size),
                FIELD(5, files))
};

// A directory that jobs ask for by name. The owner's jobs may read and write it, other tenants'
// jobs as set here.
struct Dataset {
  static constexpr std::string_view kName = "Dataset";
  static constexpr int kKind = 42;
  std::string name;
  std::string description;
  std::string tenant;              // the owner
  std::string path;                // on the nodes, and in jobs
  std::vector<std::string> read;   // tenants whose jobs may read it
  std::vector<std::string> write;  // tenants whose jobs may write to it as well
  friend bool operator==(const Dataset&, const Dataset&) = default;
  GANTRY_FIELDS(FIELD(1, name), FIELD(2, description), FIELD(3, tenant), FIELD(4, path),
                FIELD(5, read), FIELD(6, write))
};

}  // namespace gantry::tenancy
