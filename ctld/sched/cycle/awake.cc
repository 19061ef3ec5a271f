#include "ctld/sched/cycle/awake.h"

#include <algorithm>
#include <utility>

namespace gantry::sched {

std::vector<std::uint32_t> Awake::begin(std::set<std::uint32_t> woken,
                                        const std::set<std::uint32_t>& nodes, bool touched) {
  woken_ = std::move(woken);
  for (const std::uint32_t n : nodes) (void)reopen(n);
  std::vector<std::uint32_t> awake;
  for (const std::uint32_t p : d_.view.queue.busy()) {
    const Memory::PartitionMemory& memory = d_.left.memory.of(p);
    if (!memory.asleep || (memory.restless && touched)) woken_.insert(p);
    if (woken_.contains(p) || could_start(p)) awake.push_back(p);
  }
  return awake;
}

// Answers what the order asks: whether a whole partition can be skipped. It asks only after a
// request has failed or usage has grown in this plan.
Order::Passing Awake::passing() {
  return {
      [this](std::uint32_t p) { return pass_over(p); },
      [this] { return d_.left.requests.failures(); },
      [this](std::uint32_t p) { return !woken_.contains(p); },
      [this](std::uint32_t p, const Step& s) { return !could_start(p, s.request, s.first.rank); }};
}

// True if the node could hold a part of a job of this request, at a place in the order where the
// request is noted as failing. Reservations of that place and of higher ones would block it there
// as well.
bool Awake::could(const RequestKey& request, std::uint32_t node) const {
  const Room& free = d_.view.grid.free(node);
  if (!d_.view.grid.available(node)) return false;
  const bool one = request.demand.max_nodes == 1;
  if (one ? !holds(request.demand, d_.view.grid.room(node), free, request.demand.tasks)
          : tasks_fitting(request.demand, d_.view.grid.room(node), free) == 0)
    return false;
  bool lower = false;
  d_.view.timeline.each_reserved(node, [&](JobId job) {
    const auto of_job = book_.in_force().find(job);
    lower = lower || of_job == book_.in_force().end() || of_job->second.empty() ||
            place_of(of_job->second[0]) < request.failed_at;
  });
  if (lower) return true;
  const Instant until = Timeline::end_of(d_.now, request.limit);
  return d_.view.timeline.fits(node, request.demand, d_.now, until, free) >=
         (one ? request.demand.tasks : 1);
}

bool Awake::reopen(std::uint32_t node) {
  if (node >= d_.view.grid.size()) return false;
  (void)d_.view.windows.speak_for("");
  return d_.left.requests.reopen(node, [&](const RequestKey& w) { return could(w, node); });
}

bool Awake::could_start(std::uint32_t partition, std::uint32_t request, std::int32_t rank) {
  if (request == RequestKeys::kNone) return true;
  if (d_.left.requests.fails(request, {d_.view.queue.partition(partition).priority, rank}))
    return false;
  const std::uint32_t tenant = quota_.tenant_of(PartitionId{partition});
  return tenant == kNoIndex ||
         d_.view.charges.tree().fit(tenant, d_.left.requests.key(request).need).fits;
}

bool Awake::could_start(std::uint32_t partition) {
  const auto& waits = d_.left.memory.of(partition).waits;
  return std::any_of(waits.begin(), waits.end(), [&](const Memory::Wait& w) {
    return could_start(partition, w.request, w.rank);
  });
}

// A partition that has started something in this plan is looked at as a whole.
bool Awake::pass_over(std::uint32_t id) {
  if (woken_.contains(id) || could_start(id)) return false;
  PartitionProgress& p = d_.partition(id);
  if (p.starts > 0) return false;
  p.passed_over = true;
  return true;
}

void Awake::wake_behind(const Reservation& reservation, const std::vector<Share>& place) {
  if (d_.everything || reservation.start <= d_.now) return;
  for (const Share& s : reservation.shares)
    if (runs_on(place, s.node) && reopen(s.node)) d_.cut = true;
}

void Awake::remember(std::span<const LineTurn> closed) {
  const bool cut = d_.cut || d_.plan.stats.budget_spent;
  d_.plan.stats.budget_spent = cut || d_.again;
  for (const auto& [id, p] : d_.partitions) {
    Memory::PartitionMemory& memory = d_.left.memory.of(id);
    if (p.starts > 0) memory.asleep = false;
    if (p.passed_over || !p.begun) continue;
    memory.asleep = p.starts == 0;
    memory.restless = false;
    memory.waits.clear();
  }
  // If every plan looks at everything, no partition is passed over, and no notes are needed.
  if (d_.policy.everything.us > 0)
    for (const LineTurn& turn : closed) note_wait(turn);
  // Partitions too far after the first blocked job sleep until everything is looked at.
  if (d_.everything)
    for (const std::uint32_t id : d_.view.queue.busy())
      if (!d_.partition(id).begun && d_.partition(id).starts == 0)
        d_.left.memory.of(id) = {true, false, {}};
  d_.left.memory.planned(d_.everything, cut, d_.now, d_.policy);
}

void Awake::note_wait(const LineTurn& turn) {
  JobClass& c = d_.cls(turn);
  if (c.standing.verdict.reason != Reason::none) return;
  Memory::PartitionMemory& memory = d_.left.memory.of(turn.partition);
  const Blocked* why = d_.why(turn);
  if (why == nullptr || (why->by != Blocked::By::room && why->by != Blocked::By::quota)) {
    memory.restless = true;
    return;
  }
  const std::uint32_t tenant = quota_.tenant_of(c);
  const std::int32_t rank = turn.head_job.rank;
  const Place place{d_.view.queue.partition(turn.partition).priority, rank};
  for (const NodeChoice& choice : d_.view.eligible.flavors_of(c)) {
    const std::uint32_t own = nodes_.request_of(c, choice);
    // It is not known whether resources or quota are missing, so any change of a node wakes the
    // partition.
    if (own == RequestKeys::kNone ||
        (!d_.left.requests.fails(own, place) &&
         (tenant == kNoIndex || d_.view.charges.tree().fit(tenant, {choice.flavor, c.least}).fits)))
      memory.restless = true;
    else
      memory.waits.push_back({own, rank});
  }
}

}  // namespace gantry::sched
