// Reading jobs in the queue: list, show, wait and output. Client to ctld, and the answers.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/job/job_spec.h"
#include "common/job/job_state.h"
#include "common/money/money.h"
#include "common/proto/gpu_rows.h"
#include "common/proto/job_ref.h"

namespace gantry::proto {

// One row: a job, a started task of an array, or the pending rest of an array (array_tasks is set).
struct JobRow {
  JobId job{};                              // own id (of an element: its own)
  JobId array_job{};                        // 0 = no array
  std::optional<std::uint32_t> array_task;  // element
  std::string array_tasks;                  // pending rest: "3-9,12%4"
  std::string name, user, account, partition;
  Uid uid{};
  std::string tenant;  // whose job it is; "" = no tenant's
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
  std::uint32_t gpus = 0;     // over all nodes; whole GPUs, or the slices that are asked for
  std::string reservation;    // reservation that the job names; "" = none
  std::optional<Money> cost;  // of all attempts, without subtracting credits; not set: no prices
  Money credit;               // part of the cost that is credited
  std::optional<Money> cost_rate;          // per hour, while it holds something
  std::optional<std::uint64_t> billing{};  // in units of billing, once placed
  std::uint32_t gpu_parts = 0;             // over all nodes: thousandths of GPUs in parts
  Duration suspended{};                    // of this attempt, so far
  std::optional<HetPart> het;              // set for a component of a heterogeneous job
  bool has_array_id = false;  // the last task split off: in Slurm it has the array's id
  // The priority of a waiting job in each of the partitions that it may go to, in the order of
  // `partition`, which is then a list; empty for a job that names one, or that has started.
  std::vector<std::int64_t> queue_priorities{};
  std::int64_t io_per_node = 0, net_per_node = 0;  // as in JobShape; 0 = not counted
  [[nodiscard]] JobId slurm_id() const { return has_array_id ? array_job : job; }
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "job", s.job);
    v(2, "array_job", s.array_job);
    v(3, "array_task", s.array_task);
    v(4, "array_tasks", s.array_tasks);
    v(5, "name", s.name);
    v(6, "user", s.user);
    v(7, "uid", s.uid);
    v(8, "account", s.account);
    v(9, "partition", s.partition);
    v(10, "phase", s.phase);
    v(11, "outcome", s.outcome);
    v(12, "verdict", s.verdict);
    v(13, "submitted", s.submitted);
    v(14, "eligible", s.eligible);
    v(15, "started", s.started);
    v(16, "ended", s.ended);
    v(17, "expected_start", s.expected_start);
    v(18, "time_limit", s.time_limit);
    v(19, "nodes", s.nodes);
    v(20, "cpus", s.cpus);
    v(21, "tasks", s.tasks);
    v(22, "memory_per_node", s.memory_per_node);
    v(23, "node_list", s.node_list);
    v(24, "priority", s.priority);
    v(25, "exit", s.exit);
    v(26, "restarts", s.restarts);
    v(27, "gpus", s.gpus);
    v(28, "reservation", s.reservation);
    v(29, "cost", s.cost);
    v(30, "credit", s.credit);
    v(31, "cost_rate", s.cost_rate);
    v(32, "gpu_parts", s.gpu_parts);
    v(33, "suspended", s.suspended);
    v(34, "het", s.het);
    v(35, "tenant", s.tenant);
    v(46, "has_array_id", s.has_array_id);
    v(47, "billing", s.billing);
    v(48, "queue_priorities", s.queue_priorities);
    v(49, "io_per_node", s.io_per_node);
    v(50, "net_per_node", s.net_per_node);
  }
};

struct ListJobs {
  JobFilter filter;
  std::uint32_t limit = 0;  // rows in one reply; 0 = server's maximum
  JobId after{};  // page: rows with a greater id (the rest of an array has the array's id)
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "filter", s.filter);
    v(2, "limit", s.limit);
    v(3, "after", s.after);
  }
};

struct ListJobsReply {
  std::vector<JobRow> rows;  // by id
  bool more = false;
  JobId next{};  // for `after`
  Instant now{};
  std::vector<JobRef> unknown;  // of filter.jobs
  std::string currency;         // of costs; "" = there are no prices
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "rows", s.rows);
    v(2, "more", s.more);
    v(3, "next", s.next);
    v(4, "now", s.now);
    v(5, "unknown", s.unknown);
    v(6, "currency", s.currency);
  }
};

struct ShowJob {
  JobRef job;
  bool with_script = false;  // only for owner and admin
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "job", s.job);
    v(2, "with_script", s.with_script);
  }
};

struct OpenDependency {
  Dependency what;
  bool never = false;  // it can no longer be met
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "what", s.what);
    v(2, "never", s.never);
  }
};

struct JobDetail {
  JobRow row;
  JobSpec spec;
  Owner owner;
  std::vector<NodePlacement> placement;
  std::string cause;  // why it ended, with evidence
  Usage usage;
  std::uint32_t attempt = 0;
  Bytes script;
  std::vector<std::string> why;       // causes in words for which a queued job waits, in order
  std::optional<Instant> checkpoint;  // newest one of this attempt
  std::uint32_t preemptions = 0;
  std::optional<Instant> suspended_since;  // phase suspended
  std::vector<OpenDependency> waits_for;   // dependencies of a queued job that are not met
  ExitStatus worst_step;                   // of this attempt's steps that have ended
  std::vector<std::string> gpu_models;     // of the GPUs of each of `placement`; "" = not known
  std::string admin_comment, system_comment;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "row", s.row);
    v(2, "spec", s.spec);
    v(3, "owner", s.owner);
    v(4, "placement", s.placement);
    v(5, "cause", s.cause);
    v(6, "usage", s.usage);
    v(7, "attempt", s.attempt);
    v(8, "script", s.script);
    v(9, "why", s.why);
    v(10, "checkpoint", s.checkpoint);
    v(11, "preemptions", s.preemptions);
    v(12, "suspended_since", s.suspended_since);
    v(13, "waits_for", s.waits_for);
    v(14, "gpu_models", s.gpu_models);
    v(24, "worst_step", s.worst_step);
    v(25, "admin_comment", s.admin_comment);
    v(26, "system_comment", s.system_comment);
  }
};

struct ShowJobReply {
  std::vector<JobDetail> jobs;
  Instant now{};
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "jobs", s.jobs);
    v(2, "now", s.now);
  }
};

// Asks when a waiting job would start, with its present request and with others. The planner
// answers for an otherwise unchanged cluster. The asker must be allowed to see the job.
struct WhatIf {
  JobRef job;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "job", s.job);
  }
};

struct WhatIfRow {
  std::string change;            // "2 GPUs on each node instead of 4"
  std::string options;           // as gbatch takes them: "--gpus-per-node=2"
  std::optional<Instant> start;  // not after `now`: at once; not set: unknown
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "change", s.change);
    v(2, "options", s.options);
    v(3, "start", s.start);
  }
};

struct WhatIfReply {
  // With its present request; not set: too far back, or nothing makes room.
  std::optional<Instant> start;
  std::vector<WhatIfRow> rows;  // what would start it sooner, the soonest first
  bool complete = true;         // false: there was no time to try more
  Instant now{};
  std::vector<MigModeRow> modes{};  // GPUs whose MIG mode operators could change for such jobs
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "start", s.start);
    v(2, "rows", s.rows);
    v(3, "complete", s.complete);
    v(4, "now", s.now);
    v(5, "modes", s.modes);
  }
};

}  // namespace gantry::proto
