// One thread with one replica: waits for changes, applies them, plans, and passes the plan to the
// loop.
#include "ctld/planner.h"

#include <algorithm>
#include <utility>

#include "common/proto/gpu_rows.h"
#include "common/proto/job_query.h"
#include "ctld/sched/change.h"
#include "ctld/sched/plan.h"
#include "ctld/sched/policy.h"
#include "ctld/sched/verdict/mig_modes.h"
#include "ctld/sched/verdict/what_if.h"

namespace gantry::ctld {
namespace {

constexpr std::size_t kMany =
    4096;  // with this many changes the thread wakes up without making a plan

std::vector<proto::MigModeRow> rows_of(const std::vector<sched::ModeSwitch>& switches) {
  std::vector<proto::MigModeRow> rows;
  for (const sched::ModeSwitch& s : switches)
    rows.push_back({s.name, s.gpu, s.model, s.on, s.profile, s.first, s.jobs, s.only_way});
  return rows;
}

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
  changes_waiting_ += changes.size();
  changes_.push_back(std::move(changes));
  const bool many = changes_waiting_ >= kMany;
  lock.unlock();
  if (many) wake_.notify_one();
}

// The thread is woken only if it has something to do: waking it costs more than a small plan.
void Planner::request(Instant now) {
  {
    const std::lock_guard lock(mutex_);
    wanted_ = now;
    if (!may_plan()) return;  // plan_applied() will wake it
  }
  wake_.notify_one();
}

bool Planner::ask(JobId job, Instant now, std::function<void(proto::WhatIfReply)> answer) {
  return ask([this, job, now, answer = std::move(answer)](sched::Replica& replica) {
    answer(what_if(replica, job, now));
  });
}

bool Planner::ask_modes(Instant now, std::function<void(proto::MigModePlan)> answer) {
  return ask([now, answer = std::move(answer)](sched::Replica& replica) {
    answer({rows_of(sched::plan_modes(replica, now)), now});
  });
}

bool Planner::ask(Question question) {
  {
    const std::lock_guard lock(mutex_);
    if (questions_.size() >= kMaxQuestions) return false;
    questions_.push_back(std::move(question));
  }
  wake_.notify_one();
  return true;
}

proto::WhatIfReply Planner::what_if(sched::Replica& replica, JobId job, Instant now) const {
  const auto end = std::chrono::steady_clock::now() + kAnswerTime;
  proto::WhatIfReply reply;
  reply.now = now;
  const auto key = sched::key_of(replica, job);
  if (!key) return reply;
  reply.start = sched::start_if(replica, now, policy_, job, *key);
  for (sched::Variant& v : sched::variants_of(*key)) {
    if (std::chrono::steady_clock::now() >= end) {
      reply.complete = false;
      break;
    }
    const auto start = sched::start_if(replica, now, policy_, job, v.key);
    if (!start || !sched::is_worth_it(now, reply.start, *start)) continue;
    reply.rows.push_back({std::move(v.change), std::move(v.options), start});
  }
  std::stable_sort(reply.rows.begin(), reply.rows.end(),
                   [](const auto& a, const auto& b) { return a.start < b.start; });
  if (key->shape.gpus_per_node > 0) reply.modes = rows_of(sched::plan_modes(replica, now, job));
  return reply;
}

void Planner::plan_applied() {
  {
    const std::lock_guard lock(mutex_);
    handed_over_ = false;
    if (!may_plan() && !may_answer()) return;
  }
  wake_.notify_one();
}

void Planner::work() {
  sched::Replica replica;
  Instant estimated{};
  for (;;) {
    std::vector<std::vector<sched::Change>> changes;
    std::optional<Question> question;
    std::optional<Instant> now;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] {
        return stop_ || may_plan() || may_answer() || changes_waiting_ >= kMany;
      });
      if (stop_) return;
      changes.swap(changes_);
      changes_waiting_ = 0;
      if (may_plan()) {
        now = std::exchange(wanted_, std::nullopt);
        handed_over_ = true;
      } else if (may_answer()) {
        question = std::move(questions_.front());
        questions_.pop_front();
      }
    }
    for (std::vector<sched::Change>& some : changes) {
      for (const sched::Change& change : some) replica.apply(change);
      some = {};  // its memory is reused
    }
    if (question) (*question)(replica);
    if (!now) continue;
    sched::Policy policy = policy_;
    if (*now - estimated >= kEstimatePeriod) {
      policy.estimates = kEstimates;
      estimated = *now;
    }
    const auto begun = std::chrono::steady_clock::now();
    sched::Plan plan = sched::schedule(replica, *now, policy);
    plan.stats.took = microseconds(std::chrono::duration_cast<std::chrono::microseconds>(
                                       std::chrono::steady_clock::now() - begun)
                                       .count());
    done_(std::move(plan));
  }
}

}  // namespace gantry::ctld
