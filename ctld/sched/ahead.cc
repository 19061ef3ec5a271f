// Plans for jobs that must wait: reservations, and promises kept from former plans.
#include <algorithm>

#include "common/assert.h"
#include "ctld/sched/cycle.h"

namespace gantry::sched {

// ---- what former plans have promised

// Reserves again what was promised to jobs of this partition priority and rank, and above.
void Cycle::keep_promises(std::uint32_t priority, std::int32_t rank) {
  while (!kept_.empty()) {
    const Promise& next = kept_.back();
    if (std::pair{next.priority, next.rank} < std::pair{priority, rank}) return;
    Promise promise = std::move(kept_.back());
    kept_.pop_back();
    keep(std::move(promise));
  }
}

void Cycle::keep(Promise promise) {
  const auto slot = r_.queue_.find(promise.job);
  if (!slot) return;  // it has started, or is gone
  const Waiting& w = r_.queue_[*slot];
  JobClass& c = r_.queue_.job_class(r_.queue_.line(w.line).class_index);
  r_.eligible_.refresh(c, r_.grid_);
  const bool may_run =
      c.standing.verdict.reason == Reason::none && r_.timeline_.speak_for(c.key.reservation) &&
      std::all_of(promise.shares.begin(), promise.shares.end(), [&](const Share& s) {
        return r_.eligible_.nodes_of(c).test(s.node) && r_.grid_.available(s.node);
      });
  if (!may_run) return;
  promise.told = false;
  if (promise.start <= now_) {
    promise.start = now_;
    if (start_promised(promise, c, *slot)) return;
  }
  if (!r_.timeline_.keep(c, promise.job, promise.start, promise.shares)) {
    // What should be gone by now is late.
    if (promise.start != now_) return;
    promise.start = now_ + Timeline::kOverdue;
    if (!r_.timeline_.keep(c, promise.job, promise.start, promise.shares)) return;
  }
  if (promise.leaving > 0) charge(w, c, needs_of(c, promise.shares));
  ++partition(c.key.partition.value()).reservations;
  ++reservations_;
  promises_[promise.job].push_back(std::move(promise));
}

// Its time has come: on its nodes, if they are free.
bool Cycle::start_promised(const Promise& promise, JobClass& c, std::uint32_t slot) {
  const Waiting& w = r_.queue_[slot];
  const std::uint32_t tenant = tenant_of(c);
  if (started_ahead_.contains(w.job) && started_ahead_.at(w.job) >= w.startable) return false;
  for (const Share& s : promise.shares)
    if (r_.timeline_.fits(s.node, c.demand, now_, end_of(c), r_.grid_.free(s.node)) < s.tasks)
      return false;
  if (!has_job_left(tenant, c.key.partition.value())) return false;
  if (tenant != kNoIndex && !fit(tenant, needs_of(c, promise.shares)).fits) return false;
  start(c, slot, promise.shares);
  if (++started_ahead_[w.job] == w.startable)
    partition(c.key.partition.value()).started.push_back(slot);
  return true;
}

Promise* Cycle::promise_of(const Turn& turn) {
  if (promises_.empty()) return nullptr;
  const auto of_job = promises_.find(turn.first.job);
  if (of_job == promises_.end() || of_job->second.size() <= turn.ahead) return nullptr;
  return &of_job->second[turn.ahead];
}

void Cycle::lift(const Promise& promise) {
  r_.timeline_.lift(promise.job, promise.start, promise.shares);
}

// ---- reservations

bool Cycle::may_reserve(const Turn& turn) {
  return partition(turn.partition).reservations < policy_.reservations ||
         reservations_ < policy_.ahead;
}

// The earliest start over the class's flavors, and the flavor.
std::optional<std::pair<Slot, std::uint32_t>> Cycle::earliest(const JobClass& c) {
  std::optional<std::pair<Slot, std::uint32_t>> best;
  if (!r_.timeline_.speak_for(c.key.reservation)) return best;
  const std::uint32_t tenant = tenant_of(c);
  for (const NodeChoice& choice : r_.eligible_.flavors_of(c)) {
    Instant from = now_;
    if (tenant != kNoIndex) {
      const auto ready = quota_ready(tenant, {choice.flavor, c.least});
      if (!ready) continue;
      from = *ready;
    }
    std::uint64_t steps = 0;
    auto slot = r_.timeline_.earliest(c, nodes_for(c, choice), from, steps);
    plan_.stats.attempts += 1 + steps / 64;
    plan_.stats.steps += steps;
    if (slot && (!best || slot->start < best->first.start))
      best = std::pair{std::move(*slot), choice.flavor};
  }
  return best;
}

bool Cycle::reserve_ahead(Turn& turn) {
  JobClass& c = cls(turn);
  if (c.standing.verdict.reason != Reason::none) return false;
  Promise* kept = promise_of(turn);
  if (kept == nullptr && !may_reserve(turn)) return false;
  const Waiting& w = job(turn, turn.at);
  if (kept == nullptr || (kept->leaving == 0 && replans_++ < policy_.replans)) {
    if (kept != nullptr) lift(*kept);
    auto found = earliest(c);
    if (found && kept != nullptr && found->first.start >= kept->start) found.reset();
    if (found) {
      r_.timeline_.reserve(c, found->first, w.job);
      Promise promise;
      promise.job = w.job;
      promise.start = found->first.start;
      promise.shares = std::move(found->first.shares);
      promise.flavor = found->second;
      promise.priority = r_.queue_.partition(turn.partition).priority;
      promise.rank = w.rank;
      if (kept != nullptr) {
        *kept = std::move(promise);
      } else {
        auto& of_job = promises_[w.job];
        of_job.push_back(std::move(promise));
        kept = &of_job.back();
        ++partition(turn.partition).reservations;
        ++reservations_;
      }
    } else if (kept != nullptr) {
      GANTRY_ASSERT(r_.timeline_.keep(c, kept->job, kept->start, kept->shares),
                    "a promise has no room any more");
    } else {
      return false;
    }
  }
  Expected expected{w.job, kept->start, {}};
  for (const Share& s : kept->shares) expected.nodes.push_back(NodeId{s.node});
  plan_.expected.push_back(std::move(expected));
  kept->told = true;
  if (turn.at == *turn.head) turn.reserved = true;
  ++turn.ahead;
  advance(turn);
  return true;
}

}  // namespace gantry::sched
