#include "ctld/sched/cycle/starter.h"

namespace gantry::sched {

void Starter::start(const JobClass& c, std::uint32_t slot, const std::vector<Share>& shares) {
  const Waiting& w = d_.view.queue[slot];
  const auto needs = quota_.needs_of(c, shares);
  auto grants = trial_.take(w, c, shares);
  quota_.charge(w, c, needs);
  quota_.started(quota_.tenant_of(c));
  PartitionProgress& p = d_.partition(c.key.partition.value());
  ++p.starts;
  if (p.blocked) ++d_.plan.stats.backfilled;
  d_.left.memory.keys.forget(c.key.partition.value());
  d_.plan.starts.push_back({w.job, std::move(grants)});
}

void Starter::start(LineTurn& turn, const std::vector<Share>& shares) {
  const std::uint32_t slot = d_.jobs(turn)[turn.at];
  start(d_.cls(turn), slot, shares);
  d_.advance(turn);
  if (turn.started == 0) d_.partition(turn.partition).started.push_back(slot);
  d_.order->started(turn);
}

}  // namespace gantry::sched
