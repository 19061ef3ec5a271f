// The scheduler's thread: owns the replica, and exchanges only values with the loop. Requests that
// come while a plan is made are joined into one, and the next plan waits until the last one has
// been applied: before that the replica does not know its starts and would propose them again.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "common/proto/job_query.h"
#include "common/time/time.h"
#include "ctld/sched/change.h"
#include "ctld/sched/cycle/schedule.h"
#include "ctld/sched/plan.h"

namespace gantry::ctld {

inline constexpr Duration kEstimatePeriod = seconds(1);  // expected starts of waiting jobs
inline constexpr std::uint32_t kEstimates = 100;         // so many of them; about 0.3 ms

class Planner {
 public:
  // `done` is called on the planner's thread with every plan made.
  Planner(sched::Policy policy, std::function<void(sched::Plan)> done);
  ~Planner();  // waits for the plan in the making
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;

  // Changes reach the replica in the order given, before any later plan is made; many of them at
  // once while this goes on.
  void advance(std::vector<sched::Change> changes);
  void request(Instant now);
  // What would make this job start sooner. `answer` is called on the planner's thread, after the
  // next plan; false: too many ask already. One question takes kAnswerTime at most, and the plan in
  // the making.
  static constexpr std::size_t kMaxQuestions = 16;
  static constexpr std::chrono::milliseconds kAnswerTime{100};
  bool ask(JobId job, Instant now, std::function<void(proto::WhatIfReply)> answer);
  // Where MIG mode would have to change; in the same way.
  bool ask_modes(Instant now, std::function<void(proto::MigModePlan)> answer);

  // The plan that was handed over last is fact, or dropped, and advance() has its changes.
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
  std::vector<sched::Change> changes_;
  std::optional<Instant> wanted_;
  std::deque<Question> questions_;
  bool handed_over_ = false;  // a plan is with the loop
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace gantry::ctld
