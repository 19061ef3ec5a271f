// See guarantee.h.
#include "tests/sim/check/guarantee.h"

#include <fmt/core.h>

#include "ctld/sched/change.h"
#include "ctld/sched/plan.h"

namespace gantry::sim {

void Guarantee::start() {
  queue_.after(seconds(4), [this] {
    look();
    start();
  });
}

void Guarantee::look() {
  if (!controller_.runs()) {
    wish_.reset();
    due_.clear();
    return;
  }
  look_for_promises();
  if (controller_.settled())
    look_for_sleepers();
  else
    wish_.reset();
}

void Guarantee::look_for_sleepers() {
  sched::Replica replica;
  for (const sched::Change& change : controller_.core().full_view()) replica.apply(change);
  replica.set_reservations(controller_.replica().reservations());
  replica.keep_slices(controller_.replica().kept_slices());
  const sched::Plan plan = sched::schedule(replica, controller_.clock(), controller_.policy());
  std::string what;
  if (!plan.starts.empty())
    what = fmt::format("job {} could start", plan.starts.front().job.value());
  else if (!plan.preemptions.empty())
    what =
        fmt::format("job {} could be preempted for job {}", plan.preemptions.front().victim.value(),
                    plan.preemptions.front().for_job.value());
  if (what.empty() || !wish_ || wish_->what != what) {
    wish_.reset();
    if (!what.empty()) wish_ = Wish{queue_.now(), what, controller_.plans()};
    return;
  }
  if (controller_.plans() == wish_->turns && queue_.now() - wish_->since > kAsleep)
    trace_.broken(queue_.now(), fmt::format("nobody plans, although for {} s {}",
                                            (queue_.now() - wish_->since).seconds(), what));
}

void Guarantee::look_for_promises() {
  for (const sched::Reservation& p : controller_.replica().reservations()) {
    if (p.leaving.empty() || due_.contains(p.job) || !quiet_) continue;
    const Account& job = ledger_.jobs().at(p.job);
    due_[p.job] = {queue_.now() + ledger_.book().longest_grace() + kKilling, job.attempt,
                   controller_.lives()};
  }
  for (auto it = due_.begin(); it != due_.end();) {
    const Account& job = ledger_.jobs().at(it->first);
    const auto& promises = controller_.replica().reservations();
    const auto promised = std::find_if(promises.begin(), promises.end(), [&](const auto& p) {
      return p.job == it->first && !p.leaving.empty();
    });
    // the job started, ended, is held, or a job of higher rank took its place
    const bool over = promised == promises.end();
    if (!over && queue_.now() > it->second.by)
      trace_.broken(queue_.now(),
                    fmt::format("{} jobs had to leave for job {}, which still waits after {} s",
                                promised->leaving.size(), it->first.value(),
                                (ledger_.book().longest_grace() + kKilling).seconds()));
    if (over && job.attempt != it->second.attempt) ++kept_;
    it = over ? due_.erase(it) : std::next(it);
  }
}

}  // namespace gantry::sim
