// Runtime: knowledge of the controller that need not survive a restart and does not: links, what
// was sent when, who waits for an answer, timers, the last plan's estimates, counts. After a
// restart it is empty. Then nodes register again, and acting on State sends the orders that are
// missing.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "common/proto/attempt.h"
#include "common/proto/neighbours.h"
#include "common/proto/node_report.h"
#include "ctld/core/elapsed.h"
#include "ctld/core/job_marks.h"
#include "ctld/core/request.h"
#include "ctld/core/run_habits.h"
#include "ctld/core/service_marks.h"
#include "ctld/core/state/state.h"
#include "ctld/core/verdicts.h"
#include "ctld/sched/change.h"
#include "ctld/sched/plan.h"
#include "ctld/sched/tenant/quota.h"

namespace gantry::core {

struct NodeLink {
  std::uint64_t session = 0;  // 0 = not registered with this controller
  std::uint64_t next_seq = 1;
  Instant last_seen{};  // time of its last message, or of this controller's start
  NodeClock clock;
  double load = 0;
  std::int64_t free_memory = 0;
  std::vector<proto::GpuActivity> gpus;               // from its last heartbeat
  std::vector<proto::AttemptUsage> usage;             // the same; sorted by key
  proto::NodeSharing sharing;                         // the same
  std::map<proto::AttemptKey, Instant> told_sharing;  // when a job was last told of it
  Instant timer{};                                    // when it has to be looked at; 0 = never
  // Attempts that are placed on the node but were not in the list with which it registered. They
  // are judged when a heartbeat of this session proves that this was its newest registration. Until
  // then no order is sent about them, and `facts` (which may have a new boot id) are not taken
  // over.
  std::vector<proto::AttemptKey> missing;
  std::optional<NodeFacts> facts;
  bool told = false;  // the scheduler knows the node
  bool told_available = false;
};

// The last order about one node's part of an attempt.
enum class SentKind : std::uint8_t { none, launch, go, freeze, thaw, terminate };
struct Sent {
  SentKind kind = SentKind::none;
  std::uint64_t session = 0;
  Instant at{};
  Instant first{};   // first order of this kind in this session
  Duration again{};  // pause before it is repeated; it grows
};

struct Wait {
  ConnectionId connection;
  std::uint64_t request = 0;
  Uid uid{};
  std::vector<JobId> jobs;
  bool until_started = false;
  bool notices = false;  // it is answered with what NotifyJobs tells an allocation
  // How many jobs at the front of `jobs` had ended (or started) at the last look.
  std::size_t reached = 0;
};

struct LogRequest {
  ConnectionId connection;
  std::uint64_t request = 0;
  Uid uid{};
  JobId job{};
  std::uint64_t offset = 0;
  std::string path;
  NodeId node{};
};

// Jobs of one user and name; see neighbours/apart.h.
struct ApartJobs {
  std::string user, name, payer;
};
struct Apart {
  Instant until{};
  ApartJobs first, second;  // in the order of their numbers
};

struct ProbeRequest {  // a ProbeNetwork that waits for its node
  ConnectionId connection;
  std::uint64_t request = 0;
  Uid uid{};
  JobId job{};
  NodeId node{};
};

struct SubmitWindow {
  std::int64_t minute = 0;  // minutes of cluster time since the epoch
  std::uint32_t submits = 0;
};

// Until when a class of jobs waited, and for which reason; see waits.h.
struct WaitInterval {
  Instant until{};
  JobId head{};
  Reason of_head = Reason::none, of_rest = Reason::none;
};

struct QuotaLevel {            // alerts of a tenant's quota cell; see quota_alerts.h
  std::size_t level = 0;       // number of thresholds reached
  std::size_t told_level = 0;  // as in the newest event
  Instant told{};
};

// A job that waits for a budget; see budget_gate.h.
struct BudgetGate {
  std::string budget;
  Money need;
  ClassId cls{};  // the gate closed for this class and account: others are tried again
  NameId account{};
};
// The cost of a start of this class when a budget last had too little left for it.
struct BudgetNeed {
  sched::ClassKey key;
  Money need;
};

// Class, user, leaf of the share tree.
using LimitListKey = std::tuple<ClassId, Uid, std::uint32_t>;

// Jobs are being preempted to make room for this one: what one start of it costs, and for how many
// starts (tasks of an array) they make room.
struct BudgetClaim {
  Money need;
  std::uint32_t jobs = 0;
};

// Factors of the weighted priority, from the last reckoning; see multifactor.h.
struct Weights {
  Instant as_of{};
  double cores = 0;                                 // cores of the cluster
  std::unordered_map<sched::ShareId, double> fair;  // factor, by the user's leaf
};

struct NodeTriggerView {
  bool down = false, drained = false;
  std::optional<Instant> idle;  // since when it is idle
};

struct Stats {
  std::uint64_t submits = 0;
  std::uint64_t events = 0;
  std::uint64_t ended = 0;
  std::uint64_t completed = 0;  // those of `ended` that completed
  std::uint64_t failed = 0;     // those of `ended` that neither completed nor were cancelled
  std::uint64_t cancelled = 0;  // those of `ended`, and tasks without a record of their own
  std::uint64_t plans = 0;
  std::uint64_t classes = 0;                      // classes that plans looked at
  Duration plan_last{}, plan_most{}, plan_all{};  // of plans: the last, the longest, the sum
  std::uint64_t backfilled = 0;                   // starts behind a blocked job
  std::uint64_t starts = 0;
  std::uint64_t preemptions = 0;
  std::uint64_t plan_drops = 0;  // starts of a plan that no longer fitted
  std::uint64_t reports_ignored = 0;
  std::uint64_t orders = 0;
  std::uint64_t refused = 0;
};

struct Runtime {
  std::vector<NodeLink> links;                        // by NodeId
  std::uint64_t next_session = 1;                     // the epoch is in the upper half
  std::unordered_map<JobId, std::vector<Sent>> sent;  // for placed jobs, by rank

  std::uint64_t next_wait = 1;
  std::map<std::uint64_t, Wait> waits;
  std::unordered_map<JobId, std::vector<std::uint64_t>> waits_of;
  std::unordered_map<ConnectionId, std::vector<std::uint64_t>> waits_from;

  std::uint64_t next_ticket = 1;
  std::map<std::uint64_t, LogRequest> logs;
  std::map<std::uint64_t, ProbeRequest> probes;

  JobMarks marks;     // what the scheduler was told of each job, and when its timer is due
  Verdicts verdicts;  // why the jobs of each class wait
  std::set<std::pair<Instant, JobId>> job_timers;
  std::set<std::pair<Instant, NodeId>> node_timers;
  std::map<JobId, sched::Expected> expected;
  RunHabits habits;                       // of users, for texts
  std::optional<sched::QuotaTree> quota;  // quota in use by placed jobs
  sched::FitMemo fits;
  std::vector<sched::PartitionChanged> partition_views;  // by PartitionId, for check_fits
  std::vector<std::vector<const sched::NodeChanged*>> partition_nodes;  // by PartitionId
  std::vector<sched::NodeChanged> node_views;                           // by NodeId
  std::map<PartitionId, SubmitWindow> submit_windows;
  std::unordered_map<ClassId, std::vector<WaitInterval>> wait_intervals;
  std::map<sched::NamesakePair, Apart> apart;      // jobs that are kept off each other's nodes
  std::unordered_map<JobId, Instant> waits_since;  // when a requeued job was requeued
  // Placed jobs whose machine slept while they ran: the attempt, and how long it slept.
  std::unordered_map<JobId, std::pair<Attempt, Duration>> asleep;
  std::map<std::tuple<std::uint32_t, std::uint32_t, Resource>, QuotaLevel> quota_levels;
  std::unordered_map<JobId, BudgetGate> budget_gates;
  std::map<std::string, std::set<std::pair<Money, JobId>>> gated;  // by budget, by need
  std::unordered_map<ClassId, BudgetNeed> budget_needs;
  // Jobs that a limit of use keeps from the scheduler, by what they have in common; and of each the
  // list that it is in. See limits/limit_gate.h.
  std::map<LimitListKey, std::set<JobId>> limit_lists;
  std::unordered_map<JobId, LimitListKey> limited;
  std::optional<Instant> limits_due;
  std::map<JobId, BudgetClaim> budget_claims;  // where a budget holds jobs back
  std::optional<Instant> month_due;            // when shared costs of a month are posted (posted.h)
  std::optional<Instant> budgets_due;          // when a period ends or a threshold may be reached
  Instant budgets_seen{};
  Weights weights;
  std::optional<Instant> window_due;  // when a reservation begins, ends, or is to be looked at
  std::map<std::string, Instant> windows_idle;  // active reservations that no job names, since then
  // How each node was at the last look for triggers, by NodeId; unset: it has not been looked at.
  // idle_waits: when a trigger that waits for idle nodes has to look at which node; see triggers.h.
  std::vector<std::optional<NodeTriggerView>> trigger_views;
  std::set<std::tuple<Instant, TriggerId, NodeId>> idle_waits;
  ServicesRuntime services;
  std::set<JobId> suspended;  // suspended jobs: the scheduler does not know their end
  Stats stats;
  Stats stats_before;       // when somebody reset them; see ResetStats
  Instant stats_reset{};    // then, or when the controller started
  Duration plan_longest{};  // since then
  struct Calls {
    std::uint64_t count = 0;
    Duration time{};
  };
  std::map<std::string, Calls, std::less<>> calls, callers;  // since then; by message, by user
  Instant planned{};  // when a plan came last, or was asked for by time
  Instant started{};
  bool running = false;  // start() was called

  struct Waited {  // what one user waits for
    std::size_t requests = 0, jobs = 0;
  };
  std::unordered_map<Uid, Waited> waited_by;
  // Options with the values in force, as operators and as users see them; start() prepares them.
  std::map<std::string, std::string> config_values, users_config_values;
};

}  // namespace gantry::core
