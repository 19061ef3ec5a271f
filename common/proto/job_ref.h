// How a request names jobs: by id, array range, or filter.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/job/job_spec.h"

namespace gantry::proto {

// One job, one task, or some tasks of an array, as a person names them: 12, 12_3, 12_[1-4,9]. `job`
// may also be a task's own id. Without ranges the whole job or array is meant.
struct JobRef {
  JobId job{};
  std::vector<IndexRange> tasks;
  // In 12+1: a component of the heterogeneous job 12; 12 alone is all of it.
  std::optional<std::uint32_t> component{};
  // The reference to the job itself; a component becomes a plain job.
  [[nodiscard]] JobId id() const { return JobId(job.value() + component.value_or(0)); }
  friend bool operator==(const JobRef&, const JobRef&) = default;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "job", s.job);
    v(2, "tasks", s.tasks);
    v(3, "component", s.component);
  }
};

// Selects jobs. All given conditions must hold; an empty list sets no condition. Jobs that the
// asker may not see are left out without an error.
struct JobFilter {
  std::vector<JobRef> jobs;
  std::vector<std::string> users;
  std::vector<std::string> names;
  std::vector<std::string> partitions;
  std::vector<std::string> accounts;
  std::vector<std::string> nodes;   // jobs that run (or finish) on one of these
  std::vector<std::string> states;  // Slurm's words, short or long, any case; "all"
  std::vector<std::string> reservations;
  std::vector<std::string> tenants;  // tenants of the jobs, in any partition
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "jobs", s.jobs);
    v(2, "users", s.users);
    v(3, "names", s.names);
    v(4, "partitions", s.partitions);
    v(5, "accounts", s.accounts);
    v(6, "nodes", s.nodes);
    v(7, "states", s.states);
    v(8, "reservations", s.reservations);
    v(9, "tenants", s.tenants);
  }
};

}  // namespace gantry::proto
