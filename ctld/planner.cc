// One thread, one replica: wait, take what has come, advance, plan, hand over.
#include "ctld/planner.h"

#include <iterator>
#include <utility>

namespace gantry::ctld {
namespace {

constexpr std::size_t kMany = 4096;  // changes that are worth a wake-up without a plan

}  // namespace

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
  std::unique_lock lock(mutex_);
  if (changes_.empty()) {
    changes_ = std::move(changes);
  } else {
    changes_.insert(changes_.end(), std::make_move_iterator(changes.begin()),
                    std::make_move_iterator(changes.end()));
  }
  const bool many = changes_.size() >= kMany;
  lock.unlock();
  if (many) wake_.notify_one();
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
    std::optional<Instant> now;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stop_ || may_plan() || changes_.size() >= kMany; });
      if (stop_) return;
      changes.swap(changes_);
      if (may_plan()) {
        now = std::exchange(wanted_, std::nullopt);
        handed_over_ = true;
      }
    }
    for (const sched::Change& change : changes) replica.apply(change);
    if (!now) continue;
    sched::Policy policy = policy_;
    if (*now - estimated >= kEstimatePeriod) {
      policy.estimates = kEstimates;
      estimated = *now;
    }
    done_(sched::schedule(replica, *now, policy));
  }
}

}  // namespace gantry::ctld
