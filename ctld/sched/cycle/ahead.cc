// Plans for jobs that must wait: reservations, and promises kept from former plans.
#include <algorithm>

#include "common/assert.h"
#include "ctld/sched/cycle/cycle.h"
#include "ctld/sched/cycle/het.h"
#include "ctld/sched/place/place.h"

namespace gantry::sched {

// ---- what former plans have promised

// Reserves again what was promised to jobs of this partition priority and rank, and above.
void Cycle::keep_promises(std::uint32_t priority, std::int32_t rank) {
  while (!kept_.empty()) {
    const Promise& next = kept_.back();
    const bool claim = next.claimed && next.guaranteed;  // they come first, see react.cc
    if (!claim && std::pair{next.priority, next.rank} < std::pair{priority, rank}) return;
    Promise promise = std::move(kept_.back());
    kept_.pop_back();
    keep(std::move(promise));
  }
}

void Cycle::keep(Promise promise) {
  const auto slot = r_.queue_.find(promise.job);
  if (!slot) return;  // it has started, or is gone
  // Broken, it lets through whom this plan has passed over.
  const bool was_cut = std::exchange(cut_, cut_ || lowered_.contains(promise.job));
  const Waiting& w = r_.queue_[*slot];
  JobClass& c = r_.queue_.job_class(r_.queue_.line(w.line).class_index);
  r_.eligible_.refresh(c, r_.grid_);
  const bool may_run = c.standing.verdict.reason == Reason::none &&
                       r_.timeline_.speak_for(c.key.reservation) && may_use(c, promise.shares) &&
                       std::all_of(promise.shares.begin(), promise.shares.end(),
                                   [&](const Share& s) { return r_.grid_.available(s.node); });
  if (!may_run) return;
  promise.told = false;
  // A component that is due starts with the others, at the leader's turn; it may have done so.
  if (c.key.het && started_ahead_.contains(w.job)) return;
  if (promise.start <= now_ && c.key.het) promise.start = now_;
  if (promise.start <= now_ && !c.key.het) {
    promise.start = now_;
    if (start_promised(promise, c, *slot)) return;
    if (!may_start_later(promise, c)) return;
  }
  if (!put_back(promise, c)) return;
  if (promise.claimed) {
    charge(w, c, needs_of(c, promise.shares));
    order_->usage_grew();
  }
  ++partition(promise.partition.value()).reservations;
  ++reservations_;
  cut_ = was_cut;
  rekept_.push_back(promise.job);
  stands(std::move(promise));
}

// Where it was, or a little later if what should be gone by then is late.
bool Cycle::put_back(Promise& promise, const JobClass& c) {
  if (r_.timeline_.keep(c, promise.job, promise.start, promise.shares)) return true;
  Instant late = promise.start;
  if (promise.start == now_) late = now_ + Timeline::kOverdue;
  for (const Share& s : promise.shares)
    for (const std::uint32_t slot : r_.running_.on_node(s.node))
      if (const Placement& p = r_.running_[slot]; p.leaving && p.ends_by)
        late = std::max(late, *p.ends_by);
  if (late == promise.start) return false;
  promise.start = late;
  if (!promise.leaving.empty()) promise.leave_by = late;
  return r_.timeline_.keep(c, promise.job, promise.start, promise.shares);
}

// Its time has come: on its nodes, if they are free.
bool Cycle::start_promised(const Promise& promise, JobClass& c, std::uint32_t slot) {
  const Waiting& w = r_.queue_[slot];
  const std::uint32_t tenant = tenant_of(c);
  if (started_ahead_.contains(w.job) && started_ahead_.at(w.job) >= w.startable) return false;
  const auto neighbours = neighbours_of(c, r_.queue_.line(w.line).share);
  for (const Share& s : promise.shares) {
    if (r_.timeline_.fits(s.node, c.demand, now_, end_of(c), r_.grid_.free(s.node)) < s.tasks)
      return false;
    if (neighbours && !neighbours->allows(s.node)) return false;
    if (!has_devices(r_.grid_, c, s.node, end_of(c))) return false;
  }
  if (!has_job_left(tenant)) return false;
  if (tenant != kNoIndex && !fit(tenant, needs_of(c, promise.shares)).fits) return false;
  start(c, slot, promise.shares);
  order_->usage_grew();
  if (++started_ahead_[w.job] == w.startable)
    partition(c.key.partition.value()).started.push_back(slot);
  return true;
}

// Its time has come, and it has not started. It waits on where it is for what is late: jobs that
// should have gone by now, with their room or their quota. For anything else nobody knows how long.
bool Cycle::may_start_later(Promise& promise, const JobClass& c) {
  if (!promise.leaving.empty()) return true;
  // Numbers alone do not say that slices can be cut: planned anew, at its turn.
  if (!c.key.shape.gpu_slice.empty()) return false;
  const std::uint32_t tenant = tenant_of(c);
  if (!has_job_left(tenant)) return false;
  if (tenant != kNoIndex)
    for (const QuotaNeed& need : needs_of(c, promise.shares)) {
      const auto ready = quota_ready(tenant, need);
      if (!ready) return false;
      promise.start = std::max(promise.start, *ready);
    }
  return promise.start > now_ ||
         std::any_of(promise.shares.begin(), promise.shares.end(), [&](const Share& s) {
           return r_.timeline_.fits(s.node, c.demand, now_, end_of(c), r_.grid_.free(s.node)) <
                  s.tasks;
         });
}

// Nodes of one choice: a change of the documents may have parted them.
bool Cycle::may_use(const JobClass& c, const std::vector<Share>& shares) const {
  const auto choices = r_.eligible_.flavors_of(c);
  return std::any_of(choices.begin(), choices.end(), [&](const NodeChoice& choice) {
    const Bits& nodes = r_.eligible_.nodes_of(choice);
    return std::all_of(shares.begin(), shares.end(),
                       [&](const Share& s) { return nodes.test(s.node); });
  });
}

// As things are now: those who are to leave for it and are still there (asked in vain, nobody), and
// its place, which is that of its job.
void Cycle::refresh(Promise& promise) {
  std::erase_if(promise.leaving, [this](JobId job) {
    const auto slot = r_.running_.find(job);
    return !slot || !r_.running_[*slot].leaving;
  });
  auto slot = r_.queue_.find(promise.job);
  if (!slot) return;
  const auto class_at = [this](std::uint32_t of) -> const JobClass& {
    return r_.queue_.job_class(r_.queue_.line(r_.queue_[of].line).class_index);
  };
  if (const auto& het = class_at(*slot).key.het)  // a component has its leader's place
    if (const auto leader = r_.queue_.find(het->leader)) slot = leader;
  const Waiting& w = r_.queue_[*slot];
  promise.partition = r_.queue_.job_class(r_.queue_.line(w.line).class_index).key.partition;
  promise.priority = r_.queue_.partition(promise.partition.value()).priority;
  promise.rank = w.rank;
  promise.aged = w.raised;
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
std::optional<std::pair<Slot, std::uint32_t>> Cycle::earliest(const JobClass& c, Instant before) {
  std::optional<std::pair<Slot, std::uint32_t>> best;
  if (before <= now_ || !r_.timeline_.speak_for(c.key.reservation)) return best;
  const std::uint32_t tenant = tenant_of(c);
  for (const NodeChoice& choice : r_.eligible_.flavors_of(c)) {
    Instant from = now_;
    if (tenant != kNoIndex) {
      const auto ready = quota_ready(tenant, {choice.flavor, c.least});
      if (!ready) continue;
      from = *ready;
    }
    std::uint64_t steps = 0;
    if (best) before = best->first.start;
    auto slot = r_.timeline_.earliest(c, nodes_for(c, choice), from, steps, before);
    plan_.stats.attempts += 1 + steps / 64;
    plan_.stats.steps += steps;
    if (slot && (!best || slot->start < best->first.start))
      best = std::pair{std::move(*slot), choice.flavor};
  }
  return best;
}

Promise& Cycle::remember(const Turn& turn, Promise promise) {
  promise.partition = PartitionId{turn.partition};
  promise.priority = r_.queue_.partition(turn.partition).priority;
  promise.rank = turn.first.rank;
  promise.aged = turn.first.raised;
  ++partition(turn.partition).reservations;
  ++reservations_;
  auto& of_job = promises_[promise.job];
  of_job.push_back(std::move(promise));
  return of_job.back();
}

// The job of the turn is dealt with.
void Cycle::tell(Turn& turn, Promise& promise) {
  Expected expected{promise.job, promise.start, {}};
  for (const Share& s : promise.shares) expected.nodes.push_back(NodeId{s.node});
  plan_.expected.push_back(std::move(expected));
  promise.told = true;
  if (turn.at == *turn.head) turn.reserved = true;
  ++turn.ahead;
  advance(turn);
}

bool Cycle::reserve_ahead(Turn& turn) {
  JobClass& c = cls(turn);
  if (c.key.het) return HetGroup(*this, turn).reserve_ahead(turn);
  if (c.standing.verdict.reason != Reason::none) return false;
  Promise* kept = promise_of(turn);
  if (kept == nullptr && (!everything_ || !may_reserve(turn) || waits_for_slices(c))) return false;
  const bool again = everything_ && kept != nullptr && kept->leaving.empty() &&
                     now_ - kept->looked >= kReplanPeriod &&
                     plan_.stats.steps < policy_.replan_steps && replans_++ < policy_.replans;
  if (kept == nullptr || again) {
    const JobId id = job(turn, turn.at).job;
    if (kept != nullptr) lift(*kept);
    const bool claimed = kept != nullptr && kept->claimed;
    if (claimed) uncharge(id);
    auto found = earliest(c, kept != nullptr ? kept->start : Timeline::kNever);
    if (kept != nullptr) kept->looked = now_;
    if (found) {
      if (kept != nullptr) loosened(*kept);
      r_.timeline_.reserve(c, found->first, id);
      Promise promise = kept != nullptr ? *kept : Promise{};
      promise.job = id;
      promise.looked = now_;
      promise.start = found->first.start;
      promise.shares = std::move(found->first.shares);
      promise.flavor = found->second;
      if (kept != nullptr)
        *kept = std::move(promise);
      else
        kept = &remember(turn, std::move(promise));
    } else if (kept != nullptr) {
      GANTRY_ASSERT(r_.timeline_.keep(c, kept->job, kept->start, kept->shares),
                    "a promise has no room any more");
    } else {
      return false;
    }
    if (claimed) charge(job(turn, turn.at), c, needs_of(c, kept->shares));
  }
  tell(turn, *kept);
  return true;
}

}  // namespace gantry::sched
