// Room made by preemption: every line takes back what is guaranteed to its tenant, and jobs whose
// class preempts take from lower ones. Who must go: preempt.h.
//
// A claim is a promise that names its victims: from the moment it is made the nodes are reserved
// for the time when they have gone, and what the job takes is charged to its tenant. So a tenant
// claims as much as is guaranteed to it, in the order of its jobs, and not more. A claim to
// guaranteed quota goes before what was promised to others who have not claimed theirs (they
// borrow, or nobody's leaving makes a place for them): where that is in its way it is broken, and
// if it is all that is in the way, the job starts at once. Only what is promised to a job that has
// waited for so long that its rank was raised stays where it is.
#include <algorithm>
#include <bit>

#include "ctld/sched/cycle/cycle.h"
#include "ctld/sched/place/place.h"
#include "ctld/sched/preempt/preempt.h"

namespace gantry::sched {
namespace {

constexpr Duration kLongPause = seconds(5);  // where a plan had too many searches to make
constexpr Duration kKillTime = seconds(5);   // from the end of the grace until the nodes are free
constexpr std::uint64_t kSearchAttempts = 100;  // what a search counts in Policy::attempts

bool share_a_node(const std::vector<Share>& a, const std::vector<Share>& b) {
  return std::any_of(a.begin(), a.end(), [&](const Share& s) {
    return std::any_of(b.begin(), b.end(), [&](const Share& t) { return s.node == t.node; });
  });
}

}  // namespace

struct Cycle::Taking {
  VictimSet set;
  NodeChoice choice;
  bool guaranteed = false;
};

std::optional<Asker> Cycle::asker(const Turn& turn) {
  JobClass& c = cls(turn);
  if (notes(c) == nullptr || neighbours_of(c, r_.queue_.line(turn.line).share)) return std::nullopt;
  const std::uint32_t own = wish(c, r_.eligible_.flavors_of(c)[0]);
  return Asker{tenant_of(c), r_.kinds_.wish(own).kind, c.key.priority_class};
}

bool Cycle::may_ask(const Turn& turn) {
  if (!policy_.preemption || !turn.head || turn.blocked == 0) return false;
  JobClass& c = cls(turn);
  if (c.standing.verdict.reason != Reason::none || !c.key.reservation.empty()) return false;
  const Blocked& why = blocked_[turn.blocked - 1];
  if (why.by != Blocked::By::room && why.by != Blocked::By::quota) return false;
  if (why.by == Blocked::By::quota && why.fit.tenant_limit) return false;
  const Promise* promise = const_cast<Cycle*>(this)->promise_of(turn);
  if (promise != nullptr && (promise->claimed || promise->start <= now_ + kKillTime)) return false;
  if (in_vain_.contains(turn.class_index)) return false;
  const auto last = r_.in_vain_.find(turn.class_index);
  if (last == r_.in_vain_.end() || now_ < last->second) return true;
  return now_ - last->second >= (r_.searches_cut_ ? kLongPause : policy_.search_pause);
}

bool Cycle::is_guaranteed(const JobClass& c, std::uint32_t flavor) const {
  const std::uint32_t tenant = tenant_of(c);
  if (tenant == kNoIndex) return false;
  const QuotaNeed need{flavor, c.least};
  const QuotaTree& tree = r_.charges_.tree();
  const QuotaFit fit = tree.fit(tenant, need);
  const std::uint32_t depth = tree.depth(tenant);
  return depth == 0 ? fit.fits : std::popcount(fit.levels) < static_cast<int>(depth);
}

std::optional<Cycle::Taking> Cycle::victims_for(const Turn& turn) {
  JobClass& c = cls(turn);
  const auto& classes = r_.tenancy_->classes;
  const bool by_class =
      c.key.priority_class < classes.size() && classes[c.key.priority_class].preempts;
  const bool by_share = policy_.balance.us > 0 && tenant_of(c) != kNoIndex;
  // It starts when its victims have gone, at the latest, and what runs shortly does not see
  // promises between now and then.
  Duration grace{};
  for (const ClassView& v : classes)
    if (v.preemptible) grace = std::max(grace, v.grace);
  const Instant until = Timeline::end_of(now_ + grace + kKillTime, c.key.time_limit);
  std::optional<std::vector<HeldQuota>> claimed;  // most have nobody to ask, and need none
  std::optional<Taking> best;
  for (const NodeChoice& choice : r_.eligible_.flavors_of(c)) {
    const bool guaranteed = is_guaranteed(c, choice.flavor);
    if (!guaranteed && !by_class && !by_share) continue;
    if (searches_++ >= policy_.searches) {
      searches_cut_ = true;
      break;
    }
    plan_.stats.attempts += kSearchAttempts;
    in_vain_.insert(turn.class_index);
    if (!claimed) claimed = claimed_quota();
    const auto promised = promised_room(turn.first.job, guaranteed, now_, until);
    auto set = find_victims({.grid = r_.grid_,
                             .running = r_.running_,
                             .eligible = r_.eligible_,
                             .quota = r_.charges_.tree(),
                             .cls = c,
                             .choice = choice,
                             .need = {choice.flavor, c.least},
                             .now = now_,
                             .promised = promised,
                             .claimed = *claimed,
                             .user = r_.queue_.line(turn.line).share,
                             .reclaim = guaranteed,
                             .by_class = by_class,
                             .balance = by_share ? policy_.balance : Duration{}});
    if (!set || exceeds_own_limit(c, *set)) continue;
    const auto loss = [](const VictimSet& s) { return std::pair{s.highest_class, s.cost}; };
    if (!best || loss(*set) < loss(best->set)) best = Taking{std::move(*set), choice, guaranteed};
  }
  return best;
}

// The search asks for the least that the job may be charged. On nodes of which it takes more (it
// has them alone, or its tasks are spread over more of them) it could stay above the limit of its
// own tenant when all have left: they would leave in vain, again and again.
bool Cycle::exceeds_own_limit(const JobClass& c, const VictimSet& set) {
  const std::uint32_t tenant = tenant_of(c);
  if (tenant == kNoIndex) return false;
  QuotaTree& tree = r_.charges_.tree();
  const std::vector<JobId> leaving = leaving_for(set);
  for (const JobId job : leaving)
    for (const QuotaNeed& need : r_.charges_.needs_of(job))
      tree.remove(r_.charges_.tenant_of(job), need);
  const QuotaFit exact = fit(tenant, needs_of(c, set.shares));
  for (const JobId job : leaving)
    for (const QuotaNeed& need : r_.charges_.needs_of(job))
      tree.add(r_.charges_.tenant_of(job), need);
  return !exact.fits && exact.tenant_limit;
}

// What others have been promised for some of that time.
std::vector<HeldRoom> Cycle::promised_room(JobId but, bool guaranteed, Instant from,
                                           Instant until) {
  std::vector<HeldRoom> held;
  for (const auto& [job, of_job] : promises_) {
    if (job == but) continue;
    const auto slot = r_.queue_.find(job);
    if (!slot) continue;
    const JobClass& c = r_.queue_.job_class(r_.queue_.line(r_.queue_[*slot].line).class_index);
    for (const Promise& p : of_job)
      if ((!guaranteed || p.claimed || p.aged) && p.start < until &&
          from < Timeline::end_of(p.start, c.key.time_limit))
        for (const Share& s : p.shares)
          held.push_back({s.node, need_for(c.demand, r_.grid_.room(s.node), s.tasks)});
  }
  return held;
}

std::vector<HeldQuota> Cycle::claimed_quota() {
  std::vector<HeldQuota> held;
  for (const auto& [job, of_job] : promises_) {
    if (std::none_of(of_job.begin(), of_job.end(), [](const Promise& p) { return p.claimed; }))
      continue;
    const auto slot = r_.queue_.find(job);
    if (!slot) continue;
    const JobClass& c = r_.queue_.job_class(r_.queue_.line(r_.queue_[*slot].line).class_index);
    const std::uint32_t tenant = tenant_of(c);
    if (tenant == kNoIndex) continue;
    for (const Promise& p : of_job)
      if (p.claimed)
        for (const QuotaNeed& need : needs_of(c, p.shares)) held.push_back({tenant, need});
  }
  return held;
}

// In this plan it is gone by then, and nobody else's victim.
void Cycle::ask_to_leave(JobId victim, Instant by) {
  const auto limit = r_.charges_.ends_by(victim);
  const bool sooner = !limit || by < *limit;
  asked_.push_back({victim, limit, by});
  endings_.clear();
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
  endings_.clear();
}

bool Cycle::make_room(Turn& turn) {
  if (!everything_ || cls(turn).key.het || !may_ask(turn)) return false;
  const std::uint32_t class_index = turn.class_index;
  const auto limit = cls(turn).key.time_limit;
  const auto alike = asker(turn);
  if (alike && alike_in_vain_.knows(*alike, limit)) {
    in_vain_.insert(class_index);
  } else {
    const auto found = victims_for(turn);
    if (found && take_from(turn, *found)) {
      in_vain_.erase(class_index);  // the next one of its line may ask as well
      return true;
    }
    if (alike && !found && in_vain_.contains(class_index)) alike_in_vain_.note(*alike, limit);
  }
  if (in_vain_.contains(class_index)) r_.in_vain_[class_index] = now_;
  return false;
}

// A search for victims does not see what the plan starts. Where a start makes a tenant exceed its
// quota, that job or another of the tenant's may have to leave for a claim for which there was
// nobody: the next plan follows at once and looks.
void Cycle::look_at_starts() {
  if (plan_.starts.empty() || in_vain_.empty()) return;
  const QuotaTree& tree = r_.charges_.tree();
  const auto exceeds = [&](const Charged& started, const JobClass& c) {
    return started.tenant != tenant_of(c) && !promises_.contains(started.job) &&
           std::any_of(std::begin(kResourceTable), std::end(kResourceTable), [&](const auto& row) {
             return c.least[row.id] > 0 &&
                    tree.usage(started.tenant, 0, row.id) > tree.subtree(started.tenant, 0, row.id);
           });
  };
  for (const std::uint32_t class_index : in_vain_) {
    const JobClass& c = r_.queue_.job_class(class_index);
    const auto choices = r_.eligible_.flavors_of(c);
    if (std::any_of(choices.begin(), choices.end(),
                    [&](const auto& choice) { return is_guaranteed(c, choice.flavor); }) &&
        std::any_of(charged_.begin(), charged_.end(),
                    [&](const Charged& started) { return exceeds(started, c); })) {
      again_ = true;
      return;
    }
  }
}

// The jobs are asked to leave, and what they leave is promised; unless that delays a plan that it
// may not delay, or is no sooner than without them: then that is what a claim is promised.
bool Cycle::take_from(Turn& turn, const Taking& taking) {
  JobClass& c = cls(turn);
  const VictimSet& set = taking.set;
  Instant free_by = set.victims.empty() ? now_ : now_ + set.grace + kKillTime;
  for (const Share& s : set.shares)
    for (const std::uint32_t slot : r_.running_.on_node(s.node))
      if (const Placement& p = r_.running_[slot]; p.leaving && p.ends_by)
        free_by = std::max({free_by, *p.ends_by, now_ + Timeline::kOverdue});
  if (free_by == now_) {
    if (start_on(turn, taking)) return true;
    if (const std::uint32_t tenant = tenant_of(c); tenant != kNoIndex)
      free_by = quota_ready(tenant, {taking.choice.flavor, c.least}).value_or(now_);
    if (free_by == now_) return false;
  }
  if (Promise* kept = promise_of(turn); kept != nullptr && kept->start <= free_by) {
    if (!taking.guaranteed) return false;
    kept->claimed = kept->guaranteed = true;
    charge(job(turn, turn.at), c, needs_of(c, kept->shares));
    order_->usage_grew();
    tell(turn, *kept);
    return true;
  }
  const Instant before = set.victims.empty() ? free_by : free_by + microseconds(1);
  if (auto sooner = earliest(c, before)) {
    if (!taking.guaranteed) return false;
    const Taking without{{{}, std::move(sooner->first.shares), 0, 0, {}},
                         {sooner->second, taking.choice.node_set},
                         true};
    return promise_room(turn, without, sooner->first.start);
  }
  return promise_room(turn, taking, free_by);
}

bool Cycle::promise_room(Turn& turn, const Taking& taking, Instant free_by) {
  JobClass& c = cls(turn);
  const VictimSet& set = taking.set;
  const JobId id = turn.first.job;
  Promise* kept = promise_of(turn);
  const std::size_t before = asked_.size();
  for (const Victim& v : set.victims) ask_to_leave(v.job, free_by);
  if (kept != nullptr) lift(*kept);
  std::vector<Promise> broken;
  if (taking.guaranteed)
    broken = break_promises(id, set.shares, free_by, Timeline::end_of(free_by, c.key.time_limit));
  kept = promise_of(turn);
  Promise promise = kept != nullptr ? *kept : Promise{};
  promise.job = id;
  promise.start = promise.leave_by = free_by;
  promise.shares = set.shares;
  promise.flavor = taking.choice.flavor;
  promise.claimed = true;
  promise.guaranteed = taking.guaranteed;
  promise.leaving = leaving_for(set);
  if (!r_.timeline_.keep(c, id, promise.start, promise.shares)) {
    while (asked_.size() > before) take_back_asking();
    mend_promises(std::move(broken));
    if (kept != nullptr) (void)put_back(*promise_of(turn), c);
    return false;
  }
  for (const Victim& v : set.victims) plan_.preemptions.push_back({v.job, id, v.why, v.lost_work});
  charge(job(turn, turn.at), c, needs_of(c, promise.shares));
  order_->usage_grew();
  if (kept != nullptr) {
    loosened(*kept);
    *kept = std::move(promise);
  } else {
    kept = &remember(turn, std::move(promise));
  }
  mend_promises(std::move(broken));
  tell(turn, *kept);
  return true;
}

// Those that are asked now, and those on its nodes that were before.
std::vector<JobId> Cycle::leaving_for(const VictimSet& set) const {
  std::vector<JobId> jobs;
  for (const Victim& v : set.victims) jobs.push_back(v.job);
  for (const Share& s : set.shares)
    for (const std::uint32_t slot : r_.running_.on_node(s.node))
      if (r_.running_[slot].leaving) jobs.push_back(r_.running_[slot].job);
  std::sort(jobs.begin(), jobs.end());
  jobs.erase(std::unique(jobs.begin(), jobs.end()), jobs.end());
  return jobs;
}

// Nobody needs to leave: only promises were in the way.
bool Cycle::start_on(Turn& turn, const Taking& taking) {
  JobClass& c = cls(turn);
  const std::vector<Share>& shares = taking.set.shares;
  const std::uint32_t tenant = tenant_of(c);
  const Promise* kept = promise_of(turn);
  if (kept != nullptr) lift(*kept);
  std::vector<Promise> broken;
  if (taking.guaranteed) broken = break_promises(turn.first.job, shares, now_, end_of(c));
  kept = promise_of(turn);
  const bool may =
      has_job_left(tenant) && (tenant == kNoIndex || fit(tenant, needs_of(c, shares)).fits) &&
      std::all_of(shares.begin(), shares.end(), [&](const Share& s) {
        return r_.grid_.available(s.node) && has_devices(r_.grid_, c, s.node, end_of(c)) &&
               r_.timeline_.fits(s.node, c.demand, now_, end_of(c), r_.grid_.free(s.node)) >=
                   s.tasks;
      });
  if (may) {
    if (kept != nullptr) {
      loosened(*kept);
      const auto of_job = promises_.find(kept->job);
      of_job->second.erase(of_job->second.begin() + turn.ahead);
      if (of_job->second.empty()) promises_.erase(of_job);
      kept = nullptr;
    }
    const std::uint32_t slot = jobs(turn)[turn.at];
    if (turn.at == *turn.head) {
      turn.head.reset();
      turn.blocked = 0;
    }
    start(c, slot, shares);
    advance(turn);
    if (turn.started == 0) partition(turn.partition).started.push_back(slot);
    order_->started(turn);
  }
  mend_promises(std::move(broken));
  if (kept != nullptr) (void)put_back(*promise_of(turn), c);
  return may;
}

// On these nodes and in this time; not what others claim, nor what jobs have waited long for.
std::vector<Promise> Cycle::break_promises(JobId but, const std::vector<Share>& shares,
                                           Instant from, Instant until) {
  std::vector<Promise> broken;
  for (auto at = promises_.begin(); at != promises_.end();) {
    const auto slot = r_.queue_.find(at->first);
    if (at->first != but && slot) {
      const JobClass& c = r_.queue_.job_class(r_.queue_.line(r_.queue_[*slot].line).class_index);
      std::erase_if(at->second, [&](Promise& p) {
        if (p.claimed || p.aged || p.start >= until ||
            Timeline::end_of(p.start, c.key.time_limit) <= from || !share_a_node(p.shares, shares))
          return false;
        lift(p);
        broken.push_back(std::move(p));
        return true;
      });
    }
    at = at->second.empty() ? promises_.erase(at) : std::next(at);
  }
  return broken;
}

// Where there is still room for them. The others are planned anew, by the next plan.
void Cycle::mend_promises(std::vector<Promise> broken) {
  for (Promise& p : broken) {
    const auto slot = r_.queue_.find(p.job);
    JobClass& c = r_.queue_.job_class(r_.queue_.line(r_.queue_[*slot].line).class_index);
    if (r_.timeline_.speak_for(c.key.reservation) &&
        r_.timeline_.keep(c, p.job, p.start, p.shares)) {
      promises_[p.job].push_back(std::move(p));
      continue;
    }
    loosened(p);
    again_ = true;
    --partition(p.partition.value()).reservations;
    --reservations_;
    std::erase_if(plan_.expected,
                  [&](const Expected& e) { return e.job == p.job && e.start == p.start; });
  }
  (void)r_.timeline_.speak_for("");
}

}  // namespace gantry::sched
