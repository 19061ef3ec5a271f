// The last steps of a plan: when blocked jobs may expect to start, and why each class waits.
#include <algorithm>

#include "ctld/sched/cycle.h"
#include "ctld/sched/place.h"

namespace gantry::sched {

// Going on as if every job got a reservation, in order. Nothing is decided by it: the starts of
// this plan are made, and the reservations end with it.
void Cycle::estimate() {
  if (policy_.estimates == 0 || plan_.stats.budget_spent) return;
  plan_.estimated = true;
  std::priority_queue<Turn, std::vector<Turn>, Later> turns;
  for (const Turn& t : closed_)
    if (cls(t).standing.verdict.reason == Reason::none && !cls(t).jobs.at_end(t.at)) turns.push(t);
  for (std::uint32_t n = 0; n < policy_.estimates && !turns.empty(); ++n) {
    Turn turn = turns.top();
    turns.pop();
    JobClass& c = cls(turn);
    std::uint64_t steps = 0;
    const auto slot = r_.timeline_.earliest(c, r_.eligible_.nodes_of(c), steps);
    plan_.stats.steps += steps;
    if (!slot) continue;
    r_.timeline_.reserve(c, *slot);
    const JobId id = job(turn, turn.at).job;
    if (plan_.expected.empty() || plan_.expected.back().job != id)
      plan_.expected.push_back({id, slot->start, {}});
    if (advance(turn)) turns.push(turn);
  }
}

void Cycle::explain() {
  const auto in_order = [this](std::uint32_t a, std::uint32_t b) {
    return before(r_.queue_[a], r_.queue_[b]);
  };
  for (PartitionState& p : partitions_) std::sort(p.started.begin(), p.started.end(), in_order);
  for (const Turn& turn : closed_) {
    JobClass& c = cls(turn);
    ClassVerdict verdict{c.key, job(turn, *turn.head).job, explain_head(turn), {}};
    const auto second = c.jobs.next(*turn.head);
    if (c.standing.verdict.reason != Reason::none)
      verdict.of_rest = c.standing.verdict;
    else if (!c.jobs.at_end(second))
      verdict.of_rest = explain_waiting(turn, second);
    plan_.verdicts.push_back(std::move(verdict));
  }
}

Verdict Cycle::explain_head(const Turn& turn) {
  JobClass& c = cls(turn);
  if (c.standing.verdict.reason != Reason::none) return c.standing.verdict;
  if (!turn.reserved && partition(turn).reservations >= policy_.reservations)
    return explain_waiting(turn, *turn.head);
  return {Reason::resources, count_fitting(r_.grid_, r_.eligible_.nodes_of(c), c),
          c.demand.min_nodes, ""};
}

// How many stand in front, without those that this plan starts.
Verdict Cycle::explain_waiting(const Turn& turn, OrderedSlots::Cursor at) {
  const Waiting& w = job(turn, at);
  const auto& started = partition(turn).started;
  const auto gone = std::partition_point(started.begin(), started.end(),
                                         [&](std::uint32_t s) { return before(r_.queue_[s], w); }) -
                    started.begin();
  const std::size_t front = r_.queue_.in_front_of(w, cls(turn).key.partition);
  return {Reason::priority, static_cast<std::int64_t>(front) - gone, 0, ""};
}

}  // namespace gantry::sched
