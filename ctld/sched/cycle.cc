#include "ctld/sched/cycle.h"

#include <algorithm>

#include "common/assert.h"
#include "ctld/sched/place.h"

namespace gantry::sched {

Cycle::Cycle(Replica& replica, Instant now, const Policy& policy)
    : r_(replica), policy_(policy), now_(now) {
  plan_.made_at = now;
  r_.eligible_.begin_plan();
  r_.kinds_.begin(r_.eligible_.generation());
  r_.timeline_.begin(now);
  r_.charges_.settle();
  quota_on_ = policy.quota && !r_.charges_.none();
  const bool fair = policy.fair_share && r_.tenancy_->fair_share;
  order_.emplace(r_.queue_, fair ? &r_.shares_ : nullptr, quota_on_ ? &r_.charges_.tree() : nullptr,
                 now, [this](const Turn& turn) { return claim(turn); });
  kept_ = r_.promises_;
  // The last one comes first: by partition and rank, then the earliest.
  std::sort(kept_.begin(), kept_.end(), [](const Promise& a, const Promise& b) {
    const auto place = [](const Promise& p) {
      return std::tuple{~p.priority, -std::int64_t{p.rank}, p.start, p.job};
    };
    return place(b) < place(a);
  });
}

Cycle::~Cycle() {
  for (auto t = taken_.rbegin(); t != taken_.rend(); ++t)
    r_.grid_.give(t->node, t->room, t->cpus, t->devices);
  r_.running_.forget_guests();
  while (!asked_.empty()) take_back_asking();
  for (const Charged& c : charged_) r_.charges_.tree().remove(c.tenant, c.need);
  r_.shares_.forget_plan();
}

std::optional<Turn> Cycle::next_turn() {
  if (plan_.stats.attempts >= policy_.attempts || plan_.starts.size() >= policy_.starts)
    plan_.stats.budget_spent = true;
  while (!plan_.stats.budget_spent && behind_ <= policy_.depth) {
    const auto front = order_->front();
    if (!front) break;
    keep_promises(front->first, front->second);
    std::optional<Turn> turn = order_->next();
    JobClass& c = cls(*turn);
    if (turn->fresh) {
      ++plan_.stats.classes;
      turn->at = jobs(*turn).begin();
      r_.eligible_.refresh(c, r_.grid_);
    }
    if (settle(*turn)) return turn;
    if (turn->head)
      close(*turn);
    else
      order_->done(*turn);
  }
  no_more_turns();
  return std::nullopt;
}

// Lines that were blocked already are explained; of others it is not known what they wait for.
void Cycle::no_more_turns() {
  for (const Turn& turn : order_->drain())
    if (turn.head) closed_.push_back(turn);
  keep_promises(0, std::numeric_limits<std::int32_t>::min());
}

void Cycle::again(const Turn& turn) {
  if (!jobs(turn).at_end(turn.at))
    order_->again(turn);
  else if (turn.head)
    close(turn);
  else
    order_->done(turn);
}

void Cycle::close(const Turn& turn) {
  closed_.push_back(turn);
  order_->done(turn);
}

bool Cycle::advance(Turn& turn) {
  if (++turn.started >= job(turn, turn.at).startable) {
    turn.at = jobs(turn).next(turn.at);
    turn.started = turn.ahead = 0;
    if (jobs(turn).at_end(turn.at)) return false;
    turn.first = job(turn, turn.at);
  }
  return true;
}

bool Cycle::settle(Turn& turn) {
  if (started_ahead_.empty()) return true;
  while (!jobs(turn).at_end(turn.at)) {
    const Waiting& w = job(turn, turn.at);
    const auto ahead = started_ahead_.find(w.job);
    if (ahead == started_ahead_.end() || turn.started > 0) return true;
    if (ahead->second < w.startable) {
      turn.started = ahead->second;
      return true;
    }
    turn.started = w.startable - 1;
    if (!advance(turn)) return false;
  }
  return false;
}

bool Cycle::place_now(Turn& turn) {
  JobClass& c = cls(turn);
  if (c.standing.verdict.reason == Reason::none) {
    ++plan_.stats.attempts;
    // What waits for jobs to leave is charged already.
    const Promise* promise = promise_of(turn);
    const bool charged = promise != nullptr && promise->leaving > 0;
    const auto needs = charged ? needs_of(c, promise->shares) : std::vector<QuotaNeed>{};
    if (charged) uncharge(promise->job);
    const auto blocked = try_now(turn);
    if (!blocked) return true;
    if (charged) charge(job(turn, turn.at), c, needs);
    blocked_.push_back(*blocked);
    turn.blocked = static_cast<std::uint32_t>(blocked_.size());
    partition(turn.partition).blocked = true;
    ++behind_;
  }
  turn.head = turn.at;
  return false;
}

std::optional<Blocked> Cycle::try_now(Turn& turn) {
  JobClass& c = cls(turn);
  const std::uint32_t tenant = tenant_of(c);
  if (!r_.timeline_.speak_for(c.key.reservation)) return Blocked{Blocked::By::reservation, {}};
  if (!has_job_left(tenant, turn.partition)) return Blocked{Blocked::By::tenant_jobs, {}};
  const auto choices = r_.eligible_.flavors_of(c);
  std::optional<Blocked> first;
  // Flavors in which it borrows nothing come first.
  for (const bool borrowing : {false, true}) {
    for (const NodeChoice& choice : choices) {
      if (tenant != kNoIndex) {
        const QuotaFit fit = r_.charges_.tree().fit(tenant, {choice.flavor, c.least});
        if (fit.borrows != borrowing) continue;
        if (!fit.fits) {
          if (!first) first = Blocked{Blocked::By::quota, fit};
          continue;
        }
      } else if (borrowing) {
        continue;
      }
      const auto blocked = try_choice(turn, tenant, choice);
      if (!blocked) return std::nullopt;
      if (!first || first->by == Blocked::By::quota) first = blocked;
    }
  }
  return first ? first : Blocked{};
}

std::optional<Blocked> Cycle::try_choice(Turn& turn, std::uint32_t tenant,
                                         const NodeChoice& choice) {
  JobClass& c = cls(turn);
  const Promise* promise = promise_of(turn);
  if (known_to_fail(c, choice)) {
    // That was with what is promised to this job out of reach.
    if (promise == nullptr) return Blocked{};
    lift(*promise);
    const bool some =
        std::any_of(promise->shares.begin(), promise->shares.end(), [&](const Share& s) {
          return r_.grid_.available(s.node) &&
                 r_.timeline_.fits(s.node, c.demand, now_, end_of(c), r_.grid_.free(s.node)) > 0;
        });
    if (!some) {
      GANTRY_ASSERT(r_.timeline_.keep(c, promise->job, promise->start, promise->shares),
                    "a promise has no room any more");
      return Blocked{};
    }
  } else if (promise != nullptr) {
    lift(*promise);
  }
  const auto neighbours = neighbours_of(c, r_.queue_.line(turn.line).share);
  auto place = find_place(r_.grid_, r_.timeline_, nodes_for(c, choice), c, hopeful(turn, choice),
                          neighbours ? &*neighbours : nullptr);
  std::optional<Blocked> blocked;
  if (!place) {
    remember_failure(c, choice);
    blocked = Blocked{};
  } else if (tenant != kNoIndex) {
    const QuotaFit exact = fit(tenant, needs_of(c, *place));
    if (!exact.fits) blocked = Blocked{Blocked::By::quota, exact};
  }
  if (blocked) {
    if (promise != nullptr)
      GANTRY_ASSERT(r_.timeline_.keep(c, promise->job, promise->start, promise->shares),
                    "a promise has no room any more");
    return blocked;
  }
  if (promise != nullptr) {
    auto& of_job = promises_.at(promise->job);
    of_job.erase(of_job.begin() + turn.ahead);
  }
  const std::uint32_t slot = jobs(turn)[turn.at];
  start(c, slot, *place);
  advance(turn);
  if (turn.started == 0) partition(turn.partition).started.push_back(slot);
  order_->started(turn);
  return std::nullopt;
}

std::optional<Neighbours> Cycle::neighbours_of(const JobClass& c, std::uint32_t user) const {
  if (Neighbours::none(r_.running_, c)) return std::nullopt;
  return std::optional<Neighbours>(std::in_place, r_.running_, r_.grid_, c, user);
}

// Jobs that name a reservation run on its nodes only.
const Bits& Cycle::nodes_for(const JobClass& c, const NodeChoice& choice) {
  const Bits& nodes = r_.eligible_.nodes_of(choice);
  const Window* window = r_.timeline_.own_window();
  if (window == nullptr || c.key.reservation.empty()) return nodes;
  in_window_ = Bits{};
  in_window_.resize(r_.grid_.size());
  for (const std::uint32_t n : window->nodes)
    if (nodes.test(n)) in_window_.set(n);
  return in_window_;
}

// From a line's second job on: most fail once per plan and need no notes.
Bits* Cycle::hopeful(Turn& turn, const NodeChoice& choice) {
  if (!std::exchange(turn.searched, true) || !cls(turn).key.reservation.empty()) return nullptr;
  if (!Neighbours::none(r_.running_, cls(turn))) return nullptr;
  const std::uint64_t key = (std::uint64_t{turn.class_index} << 32) | choice.node_set;
  return &hopeful_.try_emplace(key, r_.eligible_.nodes_of(choice)).first->second;
}

Cycle::KindNotes* Cycle::notes(const JobClass& c, const NodeChoice& choice) {
  if (!c.required.empty() || c.demand.particular || !c.key.reservation.empty()) return nullptr;
  if (!Neighbours::none(r_.running_, c)) return nullptr;  // not the same for all
  const std::uint32_t nodes = r_.kinds_.nodes_of(choice.node_set, r_.eligible_.nodes_of(choice));
  const std::uint32_t kind = r_.kinds_.kind_of(nodes, c.demand);
  if (kinds_.size() <= kind) kinds_.resize(r_.kinds_.size());
  return &kinds_[kind];
}

// Room only shrinks while a plan is made, so a failure stays one, and one for all that ask no less.
bool Cycle::known_to_fail(const JobClass& c, const NodeChoice& choice) {
  KindNotes* own = notes(c, choice);
  if (own == nullptr) return false;
  const Instant until = end_of(c);
  if (own->failed) return until >= *own->failed;
  const std::uint32_t nodes = r_.kinds_.nodes_of(choice.node_set, r_.eligible_.nodes_of(choice));
  if (nodes >= failures_.size()) return false;
  for (const Failure& f : failures_[nodes])
    if (until >= f.until && asks_no_less(c.demand, f.demand)) {
      own->failed = until;
      return true;
    }
  return false;
}

void Cycle::remember_failure(const JobClass& c, const NodeChoice& choice) {
  constexpr std::size_t kMaxFailures = 64;
  KindNotes* own = notes(c, choice);
  if (own == nullptr) return;
  const Instant until = end_of(c);
  own->failed = own->failed ? std::min(*own->failed, until) : until;
  const std::uint32_t nodes = r_.kinds_.nodes_of(choice.node_set, r_.eligible_.nodes_of(choice));
  if (failures_.size() <= nodes) failures_.resize(nodes + 1);
  auto& failures = failures_[nodes];
  std::erase_if(failures, [&](const Failure& f) {
    return f.until >= until && asks_no_less(f.demand, c.demand);
  });
  if (failures.size() < kMaxFailures) failures.push_back({c.demand, until});
}

void Cycle::start(JobClass& c, std::uint32_t slot, const std::vector<Share>& shares) {
  const Waiting& w = r_.queue_[slot];
  const auto needs = needs_of(c, shares);
  auto grants = make_grants(r_.grid_, c.demand, shares);
  for (const NodeGrant& g : grants) {
    Taken taken{g.node.value(),
                {g.memory, g.scratch, 0, static_cast<std::int32_t>(g.gpus)},
                g.cpus,
                g.devices};
    r_.grid_.take(taken.node, taken.room, taken.cpus, taken.devices);
    const std::uint32_t user = r_.queue_.line(w.line).share;
    const JobShape& shape = c.key.shape;
    r_.running_.add_guest(
        {taken.node,
         {c.key.partition, user == kNoShare ? std::nullopt : std::optional(ShareId{user})},
         shape.sharing,
         shape.anti_affinity});
    taken_.push_back(std::move(taken));
  }
  std::optional<Instant> until;
  if (c.key.time_limit) until = end_of(c);
  r_.timeline_.started(c.demand, shares, until);
  charge(w, c, needs);
  PartitionState& p = partition(c.key.partition.value());
  ++p.starts;
  if (p.blocked) ++plan_.stats.backfilled;
  plan_.starts.push_back({w.job, std::move(grants)});
}

Plan Cycle::take_plan() {
  std::vector<Promise> keep;
  for (const auto& [job, of_job] : promises_)
    for (const Promise& p : of_job)
      if (policy_.keep_promises || p.leaving > 0) keep.push_back(p);
  r_.promises_ = std::move(keep);
  return std::move(plan_);
}

}  // namespace gantry::sched
