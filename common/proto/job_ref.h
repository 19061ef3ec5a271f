// How a request names jobs: by id, array range, or filter.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/job/job_spec.h"
#include "common/special_members.h"

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
  GANTRY_FIELDS(FIELD(1, job), FIELD(2, tasks), FIELD(3, component))
};

// Selects jobs. All given conditions must hold; an empty list sets no condition. Jobs that the
// asker may not see are left out without an error.
struct JobFilter {
  GANTRY_SPECIAL_MEMBERS(JobFilter)
  std::vector<JobRef> jobs;
  std::vector<std::string> users;
  std::vector<std::string> names;
  std::vector<std::string> partitions;
  std::vector<std::string> accounts;
  std::vector<std::string> nodes;   // jobs that run (or finish) on one of these
  std::vector<std::string> states;  // Slurm's words, short or long, any case; "all"
  std::vector<std::string> reservations;
  std::vector<std::string> tenants;  // tenants of the jobs, in any partition
  GANTRY_FIELDS(FIELD(1, jobs), FIELD(2, users), FIELD(3, names), FIELD(4, partitions),
                FIELD(5, accounts), FIELD(6, nodes), FIELD(7, states), FIELD(8, reservations),
                FIELD(9, tenants))
};

}  // namespace gantry::proto
