// A plan after a few changes: what the last one has found out still holds but for what they touch.
// Promises stay in the timeline, but for those on touched nodes; partitions that sleep are passed
// over. Then the steps are the same as ever. See memory.h.
#include <algorithm>
#include <limits>

#include "ctld/sched/cycle/cycle.h"

namespace gantry::sched {
namespace {

// What is guaranteed to a tenant and has been claimed, jobs leave for: were a borrower of a higher
// class asked first, it would start in their room, be asked to leave for the claim, and so on.
bool comes_first(const Promise& p) {
  return p.claimed && p.guaranteed;
}

Place place_of(const Promise& p) {
  if (comes_first(p))
    return {std::numeric_limits<std::uint32_t>::max(), std::numeric_limits<std::int32_t>::max()};
  return {p.priority, p.rank};
}

// By partition and rank, then the earliest; elements of an array by where they run.
bool comes_before(const Promise& a, const Promise& b) {
  const auto place = [](const Promise& p) {
    const Place of = place_of(p);
    return std::tuple{~of.first, -std::int64_t{of.second}, p.start, p.job};
  };
  const auto of_a = place(a), of_b = place(b);
  if (of_a != of_b) return of_a < of_b;
  return std::lexicographical_compare(
      a.shares.begin(), a.shares.end(), b.shares.begin(), b.shares.end(),
      [](const Share& x, const Share& y) {
        return std::pair{x.node, x.tasks} < std::pair{y.node, y.tasks};
      });
}

bool runs_on(const std::vector<Share>& place, std::uint32_t node) {
  return std::any_of(place.begin(), place.end(), [&](const Share& s) { return s.node == node; });
}

}  // namespace

// Which one an element of an array takes is the same in a plan after changes as in one anew.
void Cycle::stands(Promise promise) {
  auto& of_job = promises_[promise.job];
  const auto at = std::upper_bound(of_job.begin(), of_job.end(), promise, comes_before);
  of_job.insert(at, std::move(promise));
}

void Cycle::sort_kept() {
  std::sort(kept_.begin(), kept_.end(),  // the last one comes first
            [](const Promise& a, const Promise& b) { return comes_before(b, a); });
}

void Cycle::order(const std::vector<std::uint32_t>& partitions,
                  std::optional<Order::Passing> passing) {
  const bool fair = policy_.fair_share && r_.tenancy_->fair_share;
  order_.emplace(
      r_.queue_, fair ? &r_.shares_ : nullptr, quota_on_ ? &r_.charges_.tree() : nullptr, now_,
      [this](std::uint32_t partition, std::uint32_t class_index) {
        return claim(partition, class_index);
      },
      r_.memory_.keys, partitions, std::move(passing));
}

void Cycle::begin_anew() {
  r_.kinds_.begin(r_.eligible_.generation());
  r_.kinds_.forget_failures();
  r_.timeline_.begin(now_);
  const std::set<std::uint32_t> lines = lines_to_deal();
  for (auto& [job, of_job] : promises_)
    for (Promise& p : of_job) {
      refresh(p);
      kept_.push_back(std::move(p));
    }
  promises_.clear();
  if (!lines.empty()) deal_out(kept_, lines);
  sort_kept();
  order(r_.queue_.busy(), std::nullopt);
}

void Cycle::begin_after_changes() {
  r_.timeline_.resume(now_);
  std::set<std::uint32_t> nodes(r_.memory_.nodes().begin(), r_.memory_.nodes().end());
  std::vector<Promise> changed = take_changed_promises(nodes);
  const bool touched = !nodes.empty();  // also by what was promised there to one who is gone
  for (const auto& [job, of_job] : promises_)
    for (const Promise& p : of_job) {
      if (promised_.size() <= p.partition.value()) promised_.resize(p.partition.value() + 1);
      ++promised_[p.partition.value()];
      ++places_[place_of(p)];
      ++reservations_;
    }
  for (const Promise& p : changed) woken_.insert(p.partition.value());
  keep_where_they_are(std::move(changed));
  for (const std::uint32_t n : nodes) (void)reopen(n);
  std::vector<std::uint32_t> awake;
  for (const std::uint32_t p : r_.queue_.busy()) {
    const Memory::Lane& lane = r_.memory_.lane(p);
    if (!lane.asleep || (lane.restless && touched)) woken_.insert(p);
    if (woken_.contains(p) || could_start(p)) awake.push_back(p);
  }
  // Those that are awake by now are not to be passed over before something fails.
  order(awake, Order::Passing{[this](std::uint32_t p) { return pass_over(p); },
                              [this] { return r_.kinds_.failures(); },
                              [this](std::uint32_t p) { return !woken_.contains(p); },
                              [this](std::uint32_t p, const Step& s) {
                                return !could_start(p, s.wish, s.first.rank);
                              }});
}

// Takes out of the timeline what is promised on nodes that have changed, and on those nodes
// everything else; what waits for jobs to leave, or is due, as well. `nodes` grows by theirs.
std::vector<Promise> Cycle::take_changed_promises(std::set<std::uint32_t>& nodes) {
  std::set<JobId> jobs;
  std::vector<JobId> left;
  const auto add = [&](JobId job) {
    if (promises_.contains(job) && jobs.insert(job).second) left.push_back(job);
  };
  // The components of a heterogeneous job have the place of their leader. When the leader's rank
  // has changed, the reservations of all of them have to move; one that stayed at the old place
  // would be put out of the way at the leader's turn, and the group would lose the others' too.
  for (const JobId job : r_.memory_.jobs()) {
    add(job);
    const auto slot = r_.queue_.find(job);
    if (!slot) continue;
    const auto& het =
        r_.queue_.job_class(r_.queue_.line(r_.queue_[*slot].line).class_index).key.het;
    for (std::uint32_t i = 0; het && i < het->size; ++i) add(het->member(i));
  }
  const std::set<std::uint32_t> lines = lines_to_deal();
  if (!lines.empty())
    for (const auto& [job, of_job] : promises_)
      if (const auto slot = r_.queue_.find(job); slot && lines.contains(r_.queue_[*slot].line))
        add(job);
  for (const auto& [job, of_job] : promises_)
    for (const Promise& p : of_job)
      if (p.claimed || p.start <= now_ + Timeline::kOverdue) add(job);
  for (const std::uint32_t n : nodes) r_.timeline_.each_promised(n, add);
  while (!left.empty()) {
    const JobId job = left.back();
    left.pop_back();
    for (const Promise& p : promises_.at(job))
      for (const Share& s : p.shares)
        if (nodes.insert(s.node).second) r_.timeline_.each_promised(s.node, add);
  }
  std::vector<Promise> taken;
  for (const JobId job : jobs) {
    for (Promise& p : promises_.at(job)) {
      lift(p);
      refresh(p);
      taken.push_back(std::move(p));
    }
    promises_.erase(job);
  }
  for (const std::uint32_t n : nodes) r_.timeline_.clear(n);
  if (!lines.empty()) deal_out(taken, lines);
  return taken;
}

// Most are simply where they were. The others, and what shares a node with them, are kept when it
// is their turn, as in any plan.
void Cycle::keep_where_they_are(std::vector<Promise> promises) {
  const auto later = [&](Promise& p) { kept_.push_back(std::move(p)); };
  std::set<std::uint32_t> nodes;
  std::set<JobId> jobs;
  const auto apart = [&](const Promise& p) {
    return !p.claimed && p.start > now_ + Timeline::kOverdue && !jobs.contains(p.job) &&
           std::none_of(p.shares.begin(), p.shares.end(),
                        [&](const Share& s) { return nodes.contains(s.node); });
  };
  for (std::size_t before = promises.size() + 1; before != promises.size();) {
    before = promises.size();
    std::erase_if(promises, [&](Promise& p) {
      if (apart(p)) return false;
      for (const Share& s : p.shares) nodes.insert(s.node);
      jobs.insert(p.job);
      later(p);
      return true;
    });
  }
  std::sort(promises.begin(), promises.end(), comes_before);
  std::size_t kept = 0;
  while (kept < promises.size() && keep_there(promises[kept])) ++kept;
  if (kept < promises.size()) {  // one is broken: who is it, says their order
    for (std::size_t i = 0; i < kept; ++i) lift(promises[i]);
    for (const Promise& p : promises)
      for (const Share& s : p.shares) r_.timeline_.clear(s.node);
    for (Promise& p : promises) later(p);
    promises.clear();
  }
  for (Promise& p : promises) {
    const std::uint32_t partition = p.partition.value();
    if (promised_.size() <= partition) promised_.resize(partition + 1);
    ++promised_[partition];
    ++places_[place_of(p)];
    ++reservations_;
    stands(std::move(p));
  }
  sort_kept();
}

bool Cycle::keep_there(const Promise& p) {
  const auto slot = r_.queue_.find(p.job);
  if (!slot) return false;
  const JobClass& c = r_.queue_.job_class(r_.queue_.line(r_.queue_[*slot].line).class_index);
  return c.standing.generation == r_.eligible_.generation() &&
         c.standing.verdict.reason == Reason::none && r_.timeline_.speak_for(c.key.reservation) &&
         may_use(c, p.shares) && r_.timeline_.keep(c, p.job, p.start, p.shares);
}

// ---- room that has grown

// Could a job of the wish, of a place at which it is noted to fail, have a part on the node?
// Promises of that place and higher ones it would find there as well.
bool Cycle::could(const Wish& wish, std::uint32_t node) const {
  const Room& free = r_.grid_.free(node);
  if (!r_.grid_.available(node)) return false;
  const bool one = wish.demand.max_nodes == 1;
  if (one ? !holds(wish.demand, r_.grid_.room(node), free, wish.demand.tasks)
          : tasks_fitting(wish.demand, r_.grid_.room(node), free) == 0)
    return false;
  bool lower = false;
  r_.timeline_.each_promised(node, [&](JobId job) {
    const auto of_job = promises_.find(job);
    lower = lower || of_job == promises_.end() || of_job->second.empty() ||
            place_of(of_job->second[0]) < wish.failed_at;
  });
  if (lower) return true;
  const Instant until = Timeline::end_of(now_, wish.limit);
  return r_.timeline_.fits(node, wish.demand, now_, until, free) >= (one ? wish.demand.tasks : 1);
}

bool Cycle::reopen(std::uint32_t node) {
  if (node >= r_.grid_.size()) return false;
  (void)r_.timeline_.speak_for("");
  return r_.kinds_.reopen(node, [&](const Wish& w) { return could(w, node); });
}

bool Cycle::could_start(std::uint32_t partition, std::uint32_t wish, std::int32_t rank) {
  if (wish == Kinds::kNone) return true;
  if (r_.kinds_.fails(wish, {r_.queue_.partition(partition).priority, rank})) return false;
  const std::uint32_t tenant =
      quota_on_ ? r_.charges_.quota_node(PartitionId{partition}) : kNoIndex;
  return tenant == kNoIndex || r_.charges_.tree().fit(tenant, r_.kinds_.wish(wish).need).fits;
}

bool Cycle::could_start(std::uint32_t partition) {
  const auto& waits = r_.memory_.lane(partition).waits;
  return std::any_of(waits.begin(), waits.end(),
                     [&](const Memory::Wait& w) { return could_start(partition, w.wish, w.rank); });
}

// Once it has started something, all of it is looked at.
bool Cycle::pass_over(std::uint32_t id) {
  if (woken_.contains(id) || could_start(id)) return false;
  PartitionState& p = partition(id);
  if (p.starts > 0) return false;
  p.passed_over = true;
  return true;
}

void Cycle::look_from(Place place) {
  if (places_.empty() || !(places_.begin()->first < place)) return;
  places_.erase(places_.begin(), places_.lower_bound(place));
  for (auto at = promises_.begin(); at != promises_.end();) {
    std::erase_if(at->second, [&](Promise& p) {
      if (!(place_of(p) < place)) return false;
      lift(p);
      for (const Share& s : p.shares) r_.timeline_.clear(s.node);
      --partition(p.partition.value()).reservations;
      --reservations_;
      lowered_.insert(p.job);
      kept_.push_back(std::move(p));
      return true;
    });
    at = at->second.empty() ? promises_.erase(at) : std::next(at);
  }
  sort_kept();
}

void Cycle::loosened(const Promise& promise) {
  for (const Share& s : promise.shares) r_.memory_.touch_node(s.node);
}

// While a plan is made room only shrinks: what has failed once need not be tried again, and a plan
// that passes over those who sleep equals one that does not. So what was promised to the job that
// starts, on nodes that it does not start on, stays taken until the plan is made.
void Cycle::hold_over(const JobClass& c, const Promise& promise, const std::vector<Share>& place) {
  for (const Share& s : promise.shares) {
    r_.memory_.touch_node(s.node);
    if (runs_on(place, s.node)) continue;
    Promise part = promise;
    part.shares = {s};
    if (r_.timeline_.keep(c, part.job, part.start, part.shares))
      held_over_.push_back(std::move(part));
    else
      cut_ = true;
    again_ = true;
  }
}

// On nodes that it was promised and starts on before its time, it will be gone sooner: for whoever
// that makes room, this plan may have passed over. Then the next one is made at once.
void Cycle::wake_behind(const Promise& promise, const std::vector<Share>& place) {
  if (everything_ || promise.start <= now_) return;
  for (const Share& s : promise.shares)
    if (runs_on(place, s.node) && reopen(s.node)) cut_ = true;
}

// ---- what is left for the next plan

void Cycle::remember_waits() {
  const bool cut = cut_ || plan_.stats.budget_spent;
  plan_.stats.budget_spent = cut || again_;
  for (const auto& [id, p] : partitions_) {
    Memory::Lane& lane = r_.memory_.lane(id);
    if (p.starts > 0) lane.asleep = false;
    if (p.passed_over || !p.begun) continue;
    lane.asleep = p.starts == 0;
    lane.restless = false;
    lane.waits.clear();
  }
  // Who looks at everything each time passes over nobody.
  if (policy_.everything.us > 0)
    for (const Turn& turn : closed_) note_wait(turn);
  // Those too deep behind the first blocked job wait until everything is looked at.
  if (everything_)
    for (const std::uint32_t id : r_.queue_.busy())
      if (!partition(id).begun && partition(id).starts == 0)
        r_.memory_.lane(id) = {true, false, {}};
  for (auto& [job, of_job] : promises_)
    if (of_job.size() > 1) std::sort(of_job.begin(), of_job.end(), comes_before);
  r_.memory_.planned(everything_, cut, now_, policy_);
}

void Cycle::note_wait(const Turn& turn) {
  JobClass& c = cls(turn);
  if (c.standing.verdict.reason != Reason::none) return;
  Memory::Lane& lane = r_.memory_.lane(turn.partition);
  if (turn.blocked == 0 || (blocked_[turn.blocked - 1].by != Blocked::By::room &&
                            blocked_[turn.blocked - 1].by != Blocked::By::quota)) {
    lane.restless = true;
    return;
  }
  const std::uint32_t tenant = tenant_of(c);
  const std::int32_t rank = turn.head_job.rank;
  const Place place{r_.queue_.partition(turn.partition).priority, rank};
  for (const NodeChoice& choice : r_.eligible_.flavors_of(c)) {
    const std::uint32_t own = wish(c, choice);
    // Neither room nor quota is known to be what it waits for: not for long.
    if (own == Kinds::kNone ||
        (!r_.kinds_.fails(own, place) &&
         (tenant == kNoIndex || r_.charges_.tree().fit(tenant, {choice.flavor, c.least}).fits)))
      lane.restless = true;
    else
      lane.waits.push_back({own, rank});
  }
}

}  // namespace gantry::sched
