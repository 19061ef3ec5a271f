// Room made by preemption: the first blocked job of a tenant takes back what is guaranteed to it,
// and a job whose class preempts takes from lower ones. Who must go: preempt.h.
#include <algorithm>
#include <bit>

#include "ctld/sched/cycle.h"
#include "ctld/sched/preempt.h"

namespace gantry::sched {
namespace {

constexpr std::uint32_t kMaxSearches = 16;      // in one plan
constexpr Duration kSearchPeriod = seconds(5);  // a job for which there were no victims asks again
constexpr Duration kKillTime = seconds(5);  // from the end of the grace until the nodes are free
constexpr std::uint64_t kSearchAttempts = 100;  // what a search counts in Policy::attempts

}  // namespace

bool Cycle::may_ask(const Turn& turn) {
  if (!policy_.preemption || !turn.head || turn.at != *turn.head) return false;
  JobClass& c = cls(turn);
  if (c.standing.verdict.reason != Reason::none || !c.key.reservation.empty()) return false;
  if (partition(turn.partition).asked || turn.blocked == 0) return false;
  const Blocked& why = blocked_[turn.blocked - 1];
  if (why.by != Blocked::By::room && why.by != Blocked::By::quota) return false;
  if (why.by == Blocked::By::quota && why.fit.tenant_limit) return false;
  const Promise* promise = const_cast<Cycle*>(this)->promise_of(turn);
  return promise == nullptr || promise->leaving == 0;
}

std::optional<std::pair<VictimSet, NodeChoice>> Cycle::victims_for(const Turn& turn) {
  JobClass& c = cls(turn);
  const std::uint32_t tenant = tenant_of(c);
  const auto& classes = r_.tenancy_->classes;
  const bool by_class =
      c.key.priority_class < classes.size() && classes[c.key.priority_class].preempts;
  std::optional<std::pair<VictimSet, NodeChoice>> best;
  for (const NodeChoice& choice : r_.eligible_.flavors_of(c)) {
    const QuotaNeed need{choice.flavor, c.least};
    bool reclaim = false;
    if (tenant != kNoIndex) {
      // Within its own quota, or in that of a cohort that contains it.
      const QuotaFit fit = r_.charges_.tree().fit(tenant, need);
      const auto depth = r_.charges_.tree().depth(tenant);
      reclaim = depth == 0 ? fit.fits : std::popcount(fit.levels) < static_cast<int>(depth);
    }
    if (!reclaim && !by_class) continue;
    if (searches_++ >= kMaxSearches) break;
    plan_.stats.attempts += kSearchAttempts;
    const auto promised =
        promised_room(turn.first.job, now_, Timeline::end_of(now_, c.key.time_limit));
    auto set = find_victims({.grid = r_.grid_,
                             .running = r_.running_,
                             .eligible = r_.eligible_,
                             .quota = r_.charges_.tree(),
                             .cls = c,
                             .choice = choice,
                             .need = need,
                             .now = now_,
                             .promised = promised,
                             .user = r_.queue_.line(turn.line).share,
                             .reclaim = reclaim,
                             .by_class = by_class});
    if (!set || set->victims.empty()) continue;
    const auto loss = [](const VictimSet& s) { return std::pair{s.highest_class, s.cost}; };
    if (!best || loss(*set) < loss(best->first)) best = std::pair{std::move(*set), choice};
  }
  return best;
}

// What others have been promised for some of that time.
std::vector<HeldRoom> Cycle::promised_room(JobId but, Instant from, Instant until) {
  std::vector<HeldRoom> held;
  for (const auto& [job, of_job] : promises_) {
    if (job == but) continue;
    const auto slot = r_.queue_.find(job);
    if (!slot) continue;
    const JobClass& c = r_.queue_.job_class(r_.queue_.line(r_.queue_[*slot].line).class_index);
    for (const Promise& p : of_job)
      if (p.start < until && from < Timeline::end_of(p.start, c.key.time_limit))
        for (const Share& s : p.shares)
          held.push_back({s.node, need_for(c.demand, r_.grid_.room(s.node), s.tasks)});
  }
  return held;
}

// In this plan it is gone by then, and nobody else's victim.
void Cycle::ask_to_leave(JobId victim, Instant by) {
  const auto limit = r_.charges_.ends_by(victim);
  const bool sooner = !limit || by < *limit;
  asked_.push_back({victim, limit, by});
  r_.running_.set_leaving(victim, true);
  if (!sooner) return;
  r_.timeline_.moved(r_.running_[*r_.running_.find(victim)], by, limit);
  r_.running_.set_end(victim, by);
}

void Cycle::take_back_asking() {
  const Asked& a = asked_.back();
  constexpr Instant kNever{std::numeric_limits<std::int64_t>::max()};
  r_.running_.set_leaving(a.victim, false);
  if (!a.limit || a.by < *a.limit) {
    r_.timeline_.moved(r_.running_[*r_.running_.find(a.victim)], a.limit.value_or(kNever), a.by);
    r_.running_.set_end(a.victim, a.limit);
  }
  asked_.pop_back();
}

bool Cycle::make_room(Turn& turn) {
  if (!everything_ || !may_ask(turn)) return false;
  partition(turn.partition).asked = true;
  auto& last = r_.searches_[turn.partition];
  if (last.job == turn.first.job && now_ >= last.at && now_ - last.at < kSearchPeriod) return false;
  const std::uint32_t before = searches_;
  const auto found = victims_for(turn);
  if (found && take_from(turn, found->first, found->second)) return true;
  if (searches_ > before && searches_ <= kMaxSearches) last = {turn.first.job, now_};
  return false;
}

// The jobs are asked to leave, and what they leave is promised; unless that is no sooner than
// without them, or delays another plan.
bool Cycle::take_from(Turn& turn, const VictimSet& set, const NodeChoice& choice) {
  JobClass& c = cls(turn);
  const Instant free_by = now_ + set.grace + kKillTime;
  Promise* kept = promise_of(turn);
  if (kept != nullptr && kept->start <= free_by) return false;
  if (earliest(c, free_by + microseconds(1))) return false;
  const std::size_t before = asked_.size();
  for (const Victim& v : set.victims) ask_to_leave(v.job, free_by);
  if (kept != nullptr) lift(*kept);
  Promise promise = kept != nullptr ? *kept : Promise{};
  promise.job = turn.first.job;
  promise.start = promise.leave_by = free_by;
  promise.shares = set.shares;
  promise.flavor = choice.flavor;
  promise.leaving = static_cast<std::uint32_t>(set.victims.size());
  if (!r_.timeline_.keep(c, promise.job, promise.start, promise.shares)) {
    while (asked_.size() > before) take_back_asking();
    if (kept != nullptr) (void)put_back(*kept, c);
    return false;
  }
  for (const Victim& v : set.victims)
    plan_.preemptions.push_back({v.job, promise.job, v.reclaim, v.lost_work});
  charge(job(turn, turn.at), c, needs_of(c, promise.shares));
  order_->usage_grew();
  if (kept != nullptr) {
    loosened(*kept);
    *kept = std::move(promise);
  } else {
    kept = &remember(turn, std::move(promise));
  }
  tell(turn, *kept);
  return true;
}

}  // namespace gantry::sched
