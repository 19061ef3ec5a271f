#include "ctld/sched/cycle/starter.h"

#include <algorithm>

#include "ctld/sched/place/place.h"

namespace gantry::sched {
namespace {

// A job without a limit that accepts one gets at most this, if it cannot run without end.
constexpr Duration kLongestTried = hours(24 * 366);

}  // namespace

std::optional<Duration> Starter::limit_for(const JobClass& c,
                                           const std::vector<Share>& shares) const {
  const std::optional<Duration> least = c.key.least_limit();
  if (least == c.key.time_limit) return least;
  View& v = d_.view;
  if (!v.windows.speak_for(c.key.reservation)) return least;
  const auto is_free = [&](std::optional<Duration> limit) {
    const Instant end = Timeline::end_of(d_.now, limit);
    return std::all_of(shares.begin(), shares.end(), [&](const Share& s) {
      return has_devices(v.grid, c, s.node, end) &&
             v.timeline.holds(s.node, c.demand, d_.now, end, v.grid.free(s.node), s.tasks);
    });
  };
  if (is_free(c.key.time_limit)) return c.key.time_limit;
  // The limit is searched in steps of a minute.
  std::int64_t low = 0;
  std::int64_t high = (c.key.time_limit.value_or(kLongestTried) - *least).us / minutes(1).us + 1;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (is_free(*least + minutes(middle)) ? low : high) = middle;
  }
  return *least + minutes(low);
}

void Starter::start(const JobClass& c, std::uint32_t slot, const std::vector<Share>& shares) {
  const Waiting& w = d_.view.queue[slot];
  const auto needs = quota_.needs_of(c, shares);
  const std::optional<Duration> limit = limit_for(c, shares);
  auto grants = trial_.take(w, c, shares, limit);
  quota_.charge(w, c, needs);
  quota_.started(quota_.tenant_of(c));
  PartitionProgress& p = d_.partition(c.key.partition.value());
  ++p.starts;
  if (p.blocked) ++d_.plan.stats.backfilled;
  d_.left.memory.keys.forget(c.key.partition.value());
  Start& added = d_.plan.starts.emplace_back(Start{w.job, std::move(grants), {}});
  if (c.key.time_min) added.limit = limit;
}

void Starter::start(LineTurn& turn, const std::vector<Share>& shares) {
  const std::uint32_t slot = d_.jobs(turn)[turn.at];
  start(d_.cls(turn), slot, shares);
  d_.advance(turn);
  if (turn.started == 0) d_.partition(turn.partition).started.push_back(slot);
  d_.order->started(turn);
}

}  // namespace gantry::sched
