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
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "default_time", s.default_time);
    v(2, "max_time", s.max_time);
    v(3, "default_memory_per_cpu", s.default_memory_per_cpu);
    v(4, "default_cpus", s.default_cpus);
    v(5, "max_per_job", s.max_per_job);
    v(6, "max_per_node", s.max_per_node);
    v(7, "max_nodes", s.max_nodes);
    v(8, "host_network", s.host_network);
    v(9, "keep_others_off", s.keep_others_off);
    v(10, "default_io", s.default_io);
    v(11, "default_net", s.default_net);
  }
};

struct CountLimits {  // not set = no limit
  std::optional<std::uint32_t> queued_jobs, running_jobs, array_tasks, reservations;
  std::optional<std::uint32_t> queued_jobs_per_user, submits_per_minute;
  std::optional<std::uint32_t> service_requests;  // a second to all of its services, at each gate
  friend bool operator==(const CountLimits&, const CountLimits&) = default;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "queued_jobs", s.queued_jobs);
    v(2, "running_jobs", s.running_jobs);
    v(3, "array_tasks", s.array_tasks);
    v(4, "reservations", s.reservations);
    v(5, "queued_jobs_per_user", s.queued_jobs_per_user);
    v(6, "submits_per_minute", s.submits_per_minute);
    v(7, "service_requests", s.service_requests);
  }
};

// How long GPUs of a running job may be idle until something is done; not set = for ever.
struct IdleGpuLimits {
  std::optional<Duration> note, warn, requeue, cancel;
  friend bool operator==(const IdleGpuLimits&, const IdleGpuLimits&) = default;
  [[nodiscard]] bool any() const { return note || warn || requeue || cancel; }
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "note", s.note);
    v(2, "warn", s.warn);
    v(3, "requeue", s.requeue);
    v(4, "cancel", s.cancel);
  }
};

}  // namespace gantry::tenancy
