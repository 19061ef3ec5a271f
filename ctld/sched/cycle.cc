#include "ctld/sched/cycle.h"

#include <algorithm>

#include "common/assert.h"
#include "ctld/sched/place.h"

namespace gantry::sched {

Cycle::Cycle(Replica& replica, Instant now, const Policy& policy)
    : r_(replica), policy_(policy), now_(now) {
  plan_.made_at = now;
  r_.eligible_.begin_plan();
  r_.timeline_.begin(now);
  untouched_ = r_.queue_.classes().begin();
}

Cycle::~Cycle() {
  for (auto t = taken_.rbegin(); t != taken_.rend(); ++t) r_.grid_.give(t->node, t->room, t->cpus);
}

Cycle::PartitionState& Cycle::partition(const Turn& t) {
  const std::uint32_t id = cls(t).key.partition.value();
  if (partitions_.size() <= id) partitions_.resize(id + 1);
  return partitions_[id];
}

std::optional<Turn> Cycle::next_turn() {
  if (plan_.stats.attempts >= policy_.attempts || plan_.starts.size() >= policy_.starts) {
    plan_.stats.budget_spent = true;
    return no_more_turns();
  }
  if (behind_ > policy_.depth) return no_more_turns();
  const auto end = r_.queue_.classes().end();
  if (!touched_.empty() && (untouched_ == end || touched_.top().place < *untouched_)) {
    const Turn turn = touched_.top();
    touched_.pop();
    return turn;
  }
  if (untouched_ == end) return std::nullopt;
  Turn turn;
  turn.class_index = untouched_->first.class_index;
  turn.place = *untouched_;
  ++untouched_;
  ++plan_.stats.classes;
  r_.eligible_.refresh(cls(turn), r_.grid_);
  return turn;
}

// Classes that were blocked already are explained; of others it is not known what they wait for.
std::nullopt_t Cycle::no_more_turns() {
  for (; !touched_.empty(); touched_.pop())
    if (touched_.top().head) close(touched_.top());
  return std::nullopt;
}

void Cycle::again(const Turn& turn) {
  if (!cls(turn).jobs.at_end(turn.at)) {
    touched_.push(turn);
  } else if (turn.head) {
    close(turn);
  }
}

void Cycle::close(const Turn& turn) {
  closed_.push_back(turn);
}

bool Cycle::advance(Turn& turn) {
  const OrderedSlots& jobs = cls(turn).jobs;
  if (++turn.started >= job(turn, turn.at).startable) {
    turn.at = jobs.next(turn.at);
    turn.started = 0;
    if (jobs.at_end(turn.at)) return false;
    turn.place.first = r_.queue_[jobs[turn.at]];
  }
  return true;
}

bool Cycle::place_now(Turn& turn) {
  JobClass& c = cls(turn);
  if (c.standing.verdict.reason == Reason::none) {
    ++plan_.stats.attempts;
    const Bits& allowed = r_.eligible_.nodes_of(c);
    if (!known_to_fail(c)) {
      if (const auto place = find_place(r_.grid_, r_.timeline_, allowed, c, hopeful(turn))) {
        start(turn, *place);
        return true;
      }
      remember_failure(c);
    }
    partition(turn).blocked = true;
    ++behind_;
  }
  turn.head = turn.at;
  return false;
}

// From a class's second job on: most classes fail once per plan and need no notes.
Bits* Cycle::hopeful(Turn& turn) {
  if (!std::exchange(turn.searched, true)) return nullptr;
  if (hopeful_.size() <= turn.class_index) hopeful_.resize(turn.class_index + 1);
  auto& nodes = hopeful_[turn.class_index];
  if (!nodes) nodes = r_.eligible_.nodes_of(cls(turn));
  return &*nodes;
}

// Room only shrinks while a plan is made, so a failure stays one, and one for all that ask no less.
bool Cycle::known_to_fail(const JobClass& c) const {
  if (c.node_set >= failures_.size()) return false;
  const Instant until = Timeline::end_of(now_, c.key.time_limit);
  const auto& failures = failures_[c.node_set];
  return std::any_of(failures.begin(), failures.end(), [&](const Failure& f) {
    return until >= f.until && asks_no_less(c.demand, f.demand);
  });
}

void Cycle::remember_failure(const JobClass& c) {
  constexpr std::size_t kMaxFailures = 64;
  if (!c.required.empty()) return;
  if (failures_.size() <= c.node_set) failures_.resize(c.node_set + 1);
  auto& failures = failures_[c.node_set];
  const Instant until = Timeline::end_of(now_, c.key.time_limit);
  std::erase_if(failures, [&](const Failure& f) {
    return f.until >= until && asks_no_less(f.demand, c.demand);
  });
  if (failures.size() < kMaxFailures) failures.push_back({c.demand, until});
}

void Cycle::start(Turn& turn, const std::vector<Share>& shares) {
  JobClass& c = cls(turn);
  auto grants = make_grants(r_.grid_, c.demand, shares);
  for (const NodeGrant& g : grants) {
    Taken taken{
        g.node.value(), {g.memory, g.scratch, 0, static_cast<std::int32_t>(g.gpus)}, g.cpus};
    r_.grid_.take(taken.node, taken.room, taken.cpus);
    taken_.push_back(std::move(taken));
  }
  std::optional<Instant> until;
  if (c.key.time_limit) until = Timeline::end_of(now_, c.key.time_limit);
  r_.timeline_.started(c.demand, shares, until);
  PartitionState& p = partition(turn);
  if (p.blocked) ++plan_.stats.backfilled;
  plan_.starts.push_back({job(turn, turn.at).job, std::move(grants)});
  const std::uint32_t slot = c.jobs[turn.at];
  advance(turn);
  if (turn.started == 0) p.started.push_back(slot);
}

bool Cycle::reserve_ahead(Turn& turn) {
  JobClass& c = cls(turn);
  PartitionState& p = partition(turn);
  if (c.standing.verdict.reason != Reason::none || p.reservations >= policy_.reservations)
    return false;
  std::uint64_t steps = 0;
  const auto slot = r_.timeline_.earliest(c, r_.eligible_.nodes_of(c), steps);
  plan_.stats.attempts += 1 + steps / 64;
  plan_.stats.steps += steps;
  if (!slot) return false;
  r_.timeline_.reserve(c, *slot);
  Expected expected{job(turn, turn.at).job, slot->start, {}};
  for (const Share& s : slot->shares) expected.nodes.push_back(NodeId{s.node});
  plan_.expected.push_back(std::move(expected));
  ++p.reservations;
  if (turn.at == *turn.head) turn.reserved = true;
  advance(turn);
  return true;
}

}  // namespace gantry::sched
