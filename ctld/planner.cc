// One thread, one replica: wait, take what has come, advance, plan, hand over.
#include "ctld/planner.h"

namespace gantry::ctld {

Planner::Planner(sched::Policy policy, std::function<void(sched::Plan)> done)
    : policy_(policy), done_(std::move(done)), thread_([this] { work(); }) {}

Planner::~Planner() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Planner::advance(std::vector<sched::Change> changes) {
  if (changes.empty()) return;
  const std::lock_guard lock(mutex_);
  if (changes_.empty()) {
    changes_ = std::move(changes);
  } else {
    changes_.insert(changes_.end(), std::make_move_iterator(changes.begin()),
                    std::make_move_iterator(changes.end()));
  }
}

void Planner::request(Instant now) {
  {
    const std::lock_guard lock(mutex_);
    wanted_ = now;
  }
  wake_.notify_one();
}

void Planner::plan_applied() {
  {
    const std::lock_guard lock(mutex_);
    handed_over_ = false;
  }
  wake_.notify_one();
}

void Planner::work() {
  sched::Replica replica;
  Instant estimated{};
  for (;;) {
    std::vector<sched::Change> changes;
    Instant now;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stop_ || (wanted_.has_value() && !handed_over_); });
      if (stop_) return;
      now = *wanted_;
      wanted_.reset();
      changes.swap(changes_);
      handed_over_ = true;
    }
    for (const sched::Change& change : changes) replica.apply(change);
    sched::Policy policy = policy_;
    if (now - estimated >= kEstimatePeriod) {
      policy.estimates = kEstimates;
      estimated = now;
    }
    done_(sched::schedule(replica, now, policy));
  }
}

}  // namespace gantry::ctld
