#include "ctld/sched/cycle/cycle.h"

#include <algorithm>

#include "common/assert.h"
#include "ctld/sched/cycle/het.h"
#include "ctld/sched/place/place.h"

namespace gantry::sched {

Cycle::Cycle(Replica& replica, Instant now, const Policy& policy)
    : r_(replica), policy_(policy), now_(now), promises_(replica.promises_) {
  plan_.made_at = now;
  r_.eligible_.begin_plan();
  restore_slices();
  r_.charges_.settle();
  if (scores() != nullptr) r_.scores_.count(r_.running_, r_.queue_);
  quota_on_ = policy.quota && !r_.charges_.none();
  everything_ = !r_.memory_.may_pass_over(now, policy, r_.timeline_.next_boundary(now)) ||
                r_.kinds_.generation() != r_.eligible_.generation();
  if (everything_)
    begin_anew();
  else
    begin_after_changes();
  r_.memory_.forget_changes();
}

Cycle::PartitionState& Cycle::partition(std::uint32_t id) {
  const auto [it, made] = partitions_.try_emplace(id);
  if (made && id < promised_.size()) it->second.reservations = promised_[id];
  return it->second;
}

Cycle::~Cycle() {
  for (const Promise& p : held_over_) lift(p);
  for (auto t = taken_.rbegin(); t != taken_.rend(); ++t) {
    r_.grid_.give(t->node, t->room, t->things());
    r_.memory_.touch_node(t->node);
  }
  r_.grid_.drop_holds();
  r_.running_.forget_guests();
  for (const Asked& a : asked_) r_.touch_nodes(a.victim);
  while (!asked_.empty()) take_back_asking();
  for (const Charged& c : charged_) r_.charges_.tree().remove(c.tenant, c.need);
  r_.shares_.forget_plan();
}

std::optional<Turn> Cycle::next_turn() {
  if (plan_.stats.attempts >= policy_.attempts || plan_.starts.size() >= policy_.starts)
    plan_.stats.budget_spent = true;
  while (!plan_.stats.budget_spent && !cut_ && behind_ <= policy_.depth) {
    const auto front = order_->front();
    if (!front) break;
    keep_promises(front->first, front->second);
    if (cut_) break;
    if (order_->front() != front) continue;  // a promise has taken of its quota
    std::optional<Turn> turn = order_->next();
    JobClass& c = cls(*turn);
    PartitionState& p = partition(turn->partition);
    p.begun = true;
    if (turn->passed > 0) p.passed_over = true;
    if (turn->fresh) {
      ++plan_.stats.classes;
      turn->at = jobs(*turn).begin();
      r_.eligible_.refresh(c, r_.grid_);
      note_step(*turn);
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
  // What is known of those that were passed over is still true, and is told already.
  std::erase_if(closed_, [this](const Turn& t) { return partition(t.partition).passed_over; });
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
  if (c.key.het) return HetGroup(*this, turn).place_now(turn);
  if (c.standing.verdict.reason == Reason::none) {
    ++plan_.stats.attempts;
    // What has been claimed is charged already.
    const Promise* promise = promise_of(turn);
    const bool charged = promise != nullptr && promise->claimed;
    const auto needs = charged ? needs_of(c, promise->shares) : std::vector<QuotaNeed>{};
    if (charged) uncharge(promise->job);
    auto blocked = try_now(turn);
    if (blocked && charged && blocked->by == Blocked::By::quota) blocked = try_before_others(turn);
    if (!blocked) return true;
    if (charged) charge(job(turn, turn.at), c, needs);
    blocked_.push_back(*blocked);
    turn.blocked = static_cast<std::uint32_t>(blocked_.size());
    partition(turn.partition).blocked = true;
    ++behind_;
  }
  turn.head = turn.at;
  turn.head_job = turn.first;
  if (turn.blocked > 0 && blocked_[turn.blocked - 1].by == Blocked::By::room) note_slices(turn);
  return false;
}

// A claim that nobody has to leave for any more. What others have claimed and may not have yet is
// still used by those who leave, and they are counted already.
std::optional<Blocked> Cycle::try_before_others(Turn& turn) {
  std::vector<Charged> others;
  for (const auto& [job, of_job] : promises_)
    if (job != turn.first.job && !of_job.empty() &&
        (!of_job[0].leaving.empty() || of_job[0].start > now_))
      for (const Charged& c : charged_)
        if (c.job == job) others.push_back(c);
  for (const Charged& c : others) r_.charges_.tree().remove(c.tenant, c.need);
  const auto blocked = try_now(turn);
  for (const Charged& c : others) r_.charges_.tree().add(c.tenant, c.need);
  return blocked;
}

std::optional<Blocked> Cycle::try_now(Turn& turn) {
  JobClass& c = cls(turn);
  const std::uint32_t tenant = tenant_of(c);
  if (!r_.timeline_.speak_for(c.key.reservation)) return Blocked{Blocked::By::reservation, {}};
  if (!has_job_left(tenant)) return Blocked{Blocked::By::tenant_jobs, {}};
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
  const std::uint32_t wish = this->wish(c, choice);
  const bool failed = wish != Kinds::kNone && r_.kinds_.known_to_fail(wish, place(turn));
  if (failed && promise_of(turn) == nullptr) return Blocked{};
  look_from(place(turn));
  const Promise* promise = promise_of(turn);
  if (failed) {
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
  // What is promised to an element of an array is too small for the others, and not for it.
  Bits* const not_too_small = promise == nullptr ? hopeful(turn, choice) : nullptr;
  auto place = find_place(r_.grid_, r_.timeline_, nodes_for(c, choice), c, not_too_small,
                          neighbours ? &*neighbours : nullptr, scores());
  std::optional<Blocked> blocked;
  if (!place) {
    if (wish != Kinds::kNone) r_.kinds_.failed(wish, this->place(turn));
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
  std::optional<Promise> ahead;
  if (promise != nullptr) {
    hold_over(c, *promise, *place);
    ahead = *promise;
    const auto of_job = promises_.find(promise->job);
    of_job->second.erase(of_job->second.begin() + turn.ahead);
    if (of_job->second.empty()) promises_.erase(of_job);
  }
  const std::uint32_t slot = jobs(turn)[turn.at];
  start(c, slot, *place);
  if (ahead) wake_behind(*ahead, *place);
  advance(turn);
  if (turn.started == 0) partition(turn.partition).started.push_back(slot);
  order_->started(turn);
  return std::nullopt;
}

std::optional<Neighbours> Cycle::neighbours_of(const JobClass& c, std::uint32_t user) const {
  if (Neighbours::none(r_.running_, c)) return std::nullopt;
  return std::optional<Neighbours>(std::in_place, r_.running_, r_.grid_, c, user);
}

GpuScores* Cycle::scores() {
  r_.scores_.settle(r_.grid_);
  return r_.scores_.any() ? &r_.scores_ : nullptr;
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

void Cycle::note_step(const Turn& turn) {
  if (!order_->wants_note(turn)) return;
  JobClass& c = cls(turn);
  const auto choices = r_.eligible_.flavors_of(c);
  if (choices.size() != 1 || c.standing.verdict.reason != Reason::none)
    order_->note(turn, std::nullopt);
  else
    order_->note(turn, Step{turn.first,
                            r_.queue_.line(turn.line).share,
                            wish(c, choices[0]),
                            {choices[0].flavor, c.least}});
}

std::uint32_t Cycle::wish(JobClass& c, const NodeChoice& choice) {
  const auto choices = r_.eligible_.flavors_of(c);
  if (c.wishes_generation != r_.kinds_.generation()) {
    c.wishes_generation = r_.kinds_.generation();
    c.wishes.clear();
    const JobShape& shape = c.key.shape;
    const bool alike = c.required.empty() && !c.demand.particular && c.key.reservation.empty() &&
                       !c.key.het && shape.anti_affinity.empty() &&
                       shape.sharing == NodeSharing::any;
    for (std::size_t i = 0; alike && i < choices.size(); ++i) {
      const NodeChoice& at = choices[i];
      const std::uint32_t nodes = r_.kinds_.nodes_of(at.node_set, r_.eligible_.nodes_of(at));
      c.wishes.push_back(
          r_.kinds_.wish_of(nodes, c.demand, c.key.time_limit, {at.flavor, c.least}));
    }
  }
  // While somebody lets only some beside it, a node is not the same for all.
  if (c.wishes.empty() || r_.running_.any_locks()) return Kinds::kNone;
  return c.wishes[static_cast<std::size_t>(&choice - choices.data())];
}

Cycle::KindNotes* Cycle::notes(JobClass& c) {
  const auto choices = r_.eligible_.flavors_of(c);
  if (choices.size() != 1) return nullptr;
  const std::uint32_t own = wish(c, choices[0]);
  if (own == Kinds::kNone) return nullptr;
  const std::uint32_t kind = r_.kinds_.wish(own).kind;
  if (kinds_.size() <= kind) kinds_.resize(r_.kinds_.kinds());
  return &kinds_[kind];
}

void Cycle::start(JobClass& c, std::uint32_t slot, const std::vector<Share>& shares) {
  const Waiting& w = r_.queue_[slot];
  const auto needs = needs_of(c, shares);
  auto grants = make_grants(r_.grid_, c, shares, end_of(c));
  std::optional<Instant> until;
  if (c.key.time_limit) until = end_of(c);
  for (const NodeGrant& g : grants) {
    Taken taken{g.node.value(), {g.memory, g.scratch, 0, static_cast<std::int32_t>(g.gpus)},
                g.cpus,         g.devices,
                g.gres,         c.key.partition,
                until};
    taken.room.slices = c.demand.slices.narrow<std::int32_t>();
    taken.room.gpu_parts = thousandths_of_gpu(c.demand.gpu_share).narrow<std::int32_t>();
    taken.room.gres = c.demand.gres;
    r_.grid_.take(taken.node, taken.room, taken.things());
    r_.grid_.slices_last(taken.node, taken.devices, until.value_or(kMigNever));
    const std::uint32_t user = r_.queue_.line(w.line).share;
    const JobShape& shape = c.key.shape;
    r_.running_.add_guest(
        {taken.node,
         {c.key.partition, user == kNoShare ? std::nullopt : std::optional(ShareId{user})},
         shape.sharing,
         shape.anti_affinity});
    taken_.push_back(std::move(taken));
  }
  r_.timeline_.started(c.demand, shares, until);
  charge(w, c, needs);
  PartitionState& p = partition(c.key.partition.value());
  ++p.starts;
  if (const std::uint32_t tenant = tenant_of(c); tenant != kNoIndex) ++tenant_starts_[tenant];
  r_.memory_.keys.forget(c.key.partition.value());
  if (p.blocked) ++plan_.stats.backfilled;
  plan_.starts.push_back({w.job, std::move(grants)});
}

Plan Cycle::take_plan() {
  look_at_starts();
  remember_waits();
  if (everything_) r_.searches_cut_ = searches_cut_;
  if (!policy_.keep_promises)
    for (auto at = promises_.begin(); at != promises_.end();) {
      std::erase_if(at->second, [](const Promise& p) { return !p.claimed; });
      at = at->second.empty() ? promises_.erase(at) : std::next(at);
    }
  plan_.stats.everything = everything_;
  return std::move(plan_);
}

}  // namespace gantry::sched
