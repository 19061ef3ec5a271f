// The scheduler's thread: owns the replica, and exchanges only values with the loop. Requests that
// come while a plan is made are joined into one.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "common/time.h"
#include "ctld/sched/change.h"
#include "ctld/sched/plan.h"
#include "ctld/sched/schedule.h"

namespace gantry::ctld {

class Planner {
 public:
  // `done` is called on the planner's thread with every plan made.
  Planner(sched::Policy policy, std::function<void(sched::Plan)> done);
  ~Planner();  // waits for the plan in the making
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;

  // Changes reach the replica in the order given, before any later plan is made.
  void advance(std::vector<sched::Change> changes);
  void request(Instant now);

 private:
  void work();

  sched::Policy policy_;
  std::function<void(sched::Plan)> done_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<sched::Change> changes_;
  std::optional<Instant> wanted_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace gantry::ctld
