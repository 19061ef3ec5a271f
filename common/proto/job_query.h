// Reading jobs in the queue: list, show, wait and output. Client to ctld, and the answers.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/job/job_spec.h"
#include "common/job/job_state.h"
#include "common/money/money.h"
#include "common/proto/gpu_rows.h"
#include "common/proto/job_ref.h"
#include "common/special_members.h"

namespace gantry::proto {

// One row: a job, a started task of an array, or the pending rest of an array (array_tasks is set).
struct JobRow {
  GANTRY_SPECIAL_MEMBERS(JobRow)
  JobId job{};                              // own id (of an element: its own)
  JobId array_job{};                        // 0 = no array
  std::optional<std::uint32_t> array_task;  // element
  std::string array_tasks;                  // pending rest: "3-9,12%4"
  std::string name, user, account, partition;
  Uid uid{};
  std::string tenant;  // tenant of the job; "" = none
  Phase phase = Phase::queued;
  std::optional<Outcome> outcome;  // set when the job has ended, or is about to end
  Verdict verdict;                 // set when queued
  Instant submitted{};
  Instant eligible{};  // zero: it is held, or waits for other jobs
  std::optional<Instant> started;
  std::optional<Instant> ended;
  std::optional<Instant> expected_start;  // queued, when the planner knows
  std::optional<Duration> time_limit;     // unset = unlimited
  std::uint32_t nodes = 0;
  std::uint32_t cpus = 0, tasks = 0;
  std::int64_t memory_per_node = 0;  // bytes; 0 = partition default
  std::string node_list;             // hostlist, once placed
  std::int64_t priority = 0;
  ExitStatus exit;
  std::uint32_t restarts = 0;
  std::uint32_t gpus = 0;     // over all nodes; whole GPUs, or requested slices
  std::string reservation;    // reservation that the job names; "" = none
  std::optional<Money> cost;  // of all attempts, without subtracting credits; not set: no prices
  Money credit;               // part of the cost that is credited
  std::optional<Money> cost_rate;          // per hour, while it holds something
  std::optional<std::uint64_t> billing{};  // units of billing, once placed
  std::uint32_t gpu_parts = 0;             // over all nodes: thousandths of GPUs in parts
  Duration suspended{};                    // of this attempt, so far
  std::optional<HetPart> het;              // set for a component of a heterogeneous job
  bool has_array_id = false;  // the last task split off: in Slurm it has the array's id
  // The priority of a waiting job in each of the partitions that it may go to, in the order of
  // `partition`, which is then a list; empty for a job that names one, or that has started.
  std::vector<std::int64_t> queue_priorities{};
  std::int64_t io_per_node = 0, net_per_node = 0;  // as in JobShape; 0 = not counted
  [[nodiscard]] JobId slurm_id() const { return has_array_id ? array_job : job; }
  GANTRY_FIELDS(FIELD(1, job), FIELD(2, array_job), FIELD(3, array_task), FIELD(4, array_tasks),
                FIELD(5, name), FIELD(6, user), FIELD(7, uid), FIELD(8, account),
                FIELD(9, partition), FIELD(10, phase), FIELD(11, outcome), FIELD(12, verdict),
                FIELD(13, submitted), FIELD(14, eligible), FIELD(15, started), FIELD(16, ended),
                FIELD(17, expected_start), FIELD(18, time_limit), FIELD(19, nodes), FIELD(20, cpus),
                FIELD(21, tasks), FIELD(22, memory_per_node), FIELD(23, node_list),
                FIELD(24, priority), FIELD(25, exit), FIELD(26, restarts), FIELD(27, gpus),
                FIELD(28, reservation), FIELD(29, cost), FIELD(30, credit), FIELD(31, cost_rate),
                FIELD(32, gpu_parts), FIELD(33, suspended), FIELD(34, het), FIELD(35, tenant),
                FIELD(46, has_array_id), FIELD(47, billing), FIELD(48, queue_priorities),
                FIELD(49, io_per_node), FIELD(50, net_per_node))
};

struct ListJobs {
  JobFilter filter;
  std::uint32_t limit = 0;  // rows in one reply; 0 = server's maximum
  JobId after{};  // page: rows with a greater id (the rest of an array has the array's id)
  GANTRY_FIELDS(FIELD(1, filter), FIELD(2, limit), FIELD(3, after))
};

struct ListJobsReply {
  std::vector<JobRow> rows;  // by id
  bool more = false;
  JobId next{};  // for `after`
  Instant now{};
  std::vector<JobRef> unknown;  // unknown jobs in filter.jobs
  std::string currency;         // currency of costs; "" = there are no prices
  GANTRY_FIELDS(FIELD(1, rows), FIELD(2, more), FIELD(3, next), FIELD(4, now), FIELD(5, unknown),
                FIELD(6, currency))
};

struct ShowJob {
  JobRef job;
  bool with_script = false;  // only for owner and admin
  GANTRY_FIELDS(FIELD(1, job), FIELD(2, with_script))
};

struct OpenDependency {
  Dependency what;
  bool never = false;  // the dependency can never be met
  GANTRY_FIELDS(FIELD(1, what), FIELD(2, never))
};

struct JobDetail {
  GANTRY_SPECIAL_MEMBERS(JobDetail)
  JobRow row;
  JobSpec spec;
  Owner owner;
  std::vector<NodePlacement> placement;
  std::string cause;  // why it ended, with evidence
  Usage usage;
  std::uint32_t attempt = 0;
  Bytes script;
  std::vector<std::string> why;       // causes in words for which a queued job waits, in order
  std::optional<Instant> checkpoint;  // newest checkpoint of this attempt
  std::uint32_t preemptions = 0;
  std::optional<Instant> suspended_since;  // phase suspended
  std::vector<OpenDependency> waits_for;   // dependencies of a queued job that are not met
  ExitStatus worst_step;                   // worst exit of this attempt's ended steps
  std::vector<std::string>
      gpu_models;  // model of the GPUs of each node of `placement`; "" = not known
  std::string admin_comment, system_comment;
  GANTRY_FIELDS(FIELD(1, row), FIELD(2, spec), FIELD(3, owner), FIELD(4, placement),
                FIELD(5, cause), FIELD(6, usage), FIELD(7, attempt), FIELD(8, script),
                FIELD(9, why), FIELD(10, checkpoint), FIELD(11, preemptions),
                FIELD(12, suspended_since), FIELD(13, waits_for), FIELD(14, gpu_models),
                FIELD(24, worst_step), FIELD(25, admin_comment), FIELD(26, system_comment))
};

struct ShowJobReply {
  std::vector<JobDetail> jobs;
  Instant now{};
  GANTRY_FIELDS(FIELD(1, jobs), FIELD(2, now))
};

// Asks when a waiting job would start, with its present request and with others. The planner
// answers for an otherwise unchanged cluster. The asker must be allowed to see the job.
struct WhatIf {
  JobRef job;
  GANTRY_FIELDS(FIELD(1, job))
};

struct WhatIfRow {
  std::string change;            // "2 GPUs on each node instead of 4"
  std::string options;           // options for gbatch: "--gpus-per-node=2"
  std::optional<Instant> start;  // at or before `now`: at once; not set: unknown
  GANTRY_FIELDS(FIELD(1, change), FIELD(2, options), FIELD(3, start))
};

struct WhatIfReply {
  // With its present request; not set: too far back in the queue, or nothing makes room.
  std::optional<Instant> start;
  std::vector<WhatIfRow> rows;  // changes that would start it sooner, the soonest first
  bool complete = true;         // false: there was no time to try all changes
  Instant now{};
  std::vector<MigModeRow> modes{};  // GPUs whose MIG mode operators could change for such jobs
  GANTRY_FIELDS(FIELD(1, start), FIELD(2, rows), FIELD(3, complete), FIELD(4, now), FIELD(5, modes))
};

}  // namespace gantry::proto
