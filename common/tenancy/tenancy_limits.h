// What documents of tenants limit: sizes and numbers of jobs, and how long GPUs may be idle.
#pragma once

#include <cstdint>
#include <optional>

#include "common/fields.h"
#include "common/resources/resources.h"
#include "common/time/time.h"

namespace gantry::tenancy {

// What its jobs get that do not say, and the most of a job; not set = the partition's limits.
struct JobLimits {
  std::optional<Duration> default_time, max_time;
  std::optional<std::int64_t> default_memory_per_cpu;  // bytes
  std::optional<std::uint32_t> default_cpus;           // per task
  std::optional<Resources> max_per_job, max_per_node;  // a component of 0 = no limit
  std::optional<std::uint32_t> max_nodes;
  std::optional<bool> host_network;  // whether jobs may use --network=host; not set = no
  // Whether jobs may ask for --exclusive=tenant or =user, which keep the jobs of others off whole
  // nodes while only the cores that they asked for are counted; not set = no.
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
  std::optional<std::uint32_t> service_requests;  // a second to all of its services, at each gate
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

}  // namespace gantry::tenancy
