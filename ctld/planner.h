// The scheduler's thread. It owns the replica, and exchanges only values with the loop. Requests
// that come while a plan is being made are joined into one. The next plan waits until the last one
// has been applied: before that the replica does not know the jobs which that plan started, and
// would start them again.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "common/proto/gpu_rows.h"
#include "common/proto/job_query.h"
#include "common/time/time.h"
#include "ctld/sched/change.h"
#include "ctld/sched/cycle/schedule.h"
#include "ctld/sched/plan.h"
#include "ctld/sched/policy.h"

namespace gantry::ctld {

// How often waiting jobs get an expected start.
inline constexpr Duration kEstimatePeriod = seconds(1);
inline constexpr std::uint32_t kEstimates =
    100;  // jobs that get an expected start; takes about 0.3 ms

class Planner {
 public:
  // `done` is called on the planner's thread with every plan that was made.
  Planner(sched::Policy policy, std::function<void(sched::Plan)> done);
  ~Planner();  // waits for the plan that is being made
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;

  // Changes reach the replica in the order given, before any later plan is made. While a plan is
  // made, they are collected and then applied together.
  void advance(std::vector<sched::Change> changes);
  void request(Instant now);
  // Asks what would make this job start sooner. `answer` is called on the planner's thread, after
  // the next plan. Returns false if too many questions wait. A question takes at most kAnswerTime,
  // after the plan that is being made.
  static constexpr std::size_t kMaxQuestions = 16;
  static constexpr std::chrono::milliseconds kAnswerTime{100};
  bool ask(JobId job, Instant now, std::function<void(proto::WhatIfReply)> answer);
  // Asks in the same way where MIG mode would have to change.
  bool ask_modes(Instant now, std::function<void(proto::MigModePlan)> answer);

  // Notes that the last plan was applied, or dropped, and that advance() has got its changes.
  void plan_applied();

 private:
  using Question = std::function<void(sched::Replica&)>;
  bool ask(Question question);
  void work();
  [[nodiscard]] bool may_plan() const { return wanted_.has_value() && !handed_over_; }
  [[nodiscard]] bool may_answer() const { return !questions_.empty() && !handed_over_; }
  [[nodiscard]] proto::WhatIfReply what_if(sched::Replica& replica, JobId job, Instant now) const;

  sched::Policy policy_;
  std::function<void(sched::Plan)> done_;
  std::mutex mutex_;
  std::condition_variable wake_;
  // In the vectors in which they came: changes are large, so they are not moved into one vector.
  std::vector<std::vector<sched::Change>> changes_;
  std::size_t changes_waiting_ = 0;
  std::optional<Instant> wanted_;
  std::deque<Question> questions_;
  bool handed_over_ = false;  // the loop has a plan that is not applied yet
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace gantry::ctld
