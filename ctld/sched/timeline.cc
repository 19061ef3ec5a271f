#include "ctld/sched/timeline.h"

#include <algorithm>
#include <limits>

#include "common/assert.h"

namespace gantry::sched {

Instant Timeline::end_of(Instant start, const std::optional<Duration>& limit) {
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  if (!limit || limit->us > kNever - start.us) return {kNever};
  return start + *limit;
}

void Timeline::begin(Instant now) {
  now_ = now;
  for (const std::uint32_t n : reserved_nodes_) {
    ahead_[n].reservations.clear();
    ahead_[n].checkpoints.clear();
    reserved_.clear(n);
  }
  reserved_nodes_.clear();
  freed_.clear();
  sorted_freed_ = 0;
  reserved_.resize(grid_.size());
  ahead_.resize(grid_.size());
  notes_.resize(grid_.size());
}

Room Timeline::spare_at(const Ahead& ahead, Instant at, Room room) const {
  for (const Reservation& r : ahead.reservations)
    if (r.from <= at && at < r.until) room -= r.room;
  return room;
}

std::uint32_t Timeline::fits(std::uint32_t node, const Demand& demand, Instant from, Instant until,
                             const Room& room) const {
  const Room& size = grid_.room(node);
  if (!reserved_.test(node)) return tasks_fitting(demand, size, room);
  const Ahead& ahead = ahead_[node];
  std::uint32_t least = tasks_fitting(demand, size, spare_at(ahead, from, room));
  for (const Checkpoint& c : ahead.checkpoints) {
    if (c.at >= until || least == 0) break;
    if (c.at > from) least = std::min(least, tasks_fitting(demand, size, c.spare));
  }
  return least;
}

std::optional<Instant> Timeline::same_until(std::uint32_t node, Instant from, Instant until) const {
  for (const Checkpoint& c : ahead_[node].checkpoints)
    if (c.at >= until) return c.at - (until - from);
  return std::nullopt;
}

Timeline::Ahead& Timeline::ahead_of(std::uint32_t node) {
  if (!reserved_.test(node)) {
    reserved_.set(node);
    reserved_nodes_.push_back(node);
  }
  return ahead_[node];
}

void Timeline::sort_freed() {
  const auto earlier = [](const Freed& a, const Freed& b) {
    return std::pair{a.at, a.node} < std::pair{b.at, b.node};
  };
  const auto middle = freed_.begin() + static_cast<std::ptrdiff_t>(sorted_freed_);
  std::sort(middle, freed_.end(), earlier);
  std::inplace_merge(freed_.begin(), middle, freed_.end(), earlier);
  sorted_freed_ = freed_.size();
}

void Timeline::promise(Checkpoint& point, const Room& need) {
  point.spare -= need;
  // A node that shrank under its jobs may have less than nothing of what is not asked for.
  const auto there = [](std::int64_t spare, std::int64_t asked) {
    return asked == 0 || spare >= 0;
  };
  GANTRY_ASSERT(there(point.spare.cpus, need.cpus) && there(point.spare.memory, need.memory) &&
                    there(point.spare.scratch, need.scratch) && there(point.spare.gpus, need.gpus),
                "room was promised twice");
}

void Timeline::started(const Demand& demand, const std::vector<Share>& shares,
                       std::optional<Instant> until) {
  for (const Share& share : shares) {
    const Room need = need_for(demand, grid_.room(share.node), share.tasks);
    if (until) freed_.push_back({*until, share.node, need});
    if (!reserved_.test(share.node)) continue;
    for (Checkpoint& c : ahead_[share.node].checkpoints)
      if (!until || c.at < *until) promise(c, need);
  }
}

void Timeline::reserve(const JobClass& cls, const Slot& slot) {
  const Instant until = end_of(slot.start, cls.key.time_limit);
  for (std::size_t i = 0; i < slot.shares.size(); ++i) {
    const auto [node, tasks] = slot.shares[i];
    const Room need = need_for(cls.demand, grid_.room(node), tasks);
    Ahead& ahead = ahead_of(node);
    auto& points = ahead.checkpoints;
    auto at = std::lower_bound(points.begin(), points.end(), slot.start,
                               [](const Checkpoint& c, Instant t) { return c.at < t; });
    if (at == points.end() || at->at != slot.start)
      at = points.insert(at, {slot.start, spare_at(ahead, slot.start, slot.room[i])});
    for (; at != points.end() && at->at < until; ++at) promise(*at, need);
    ahead.reservations.push_back({slot.start, until, need});
    if (cls.key.time_limit) freed_.push_back({until, node, {}});
  }
}

}  // namespace gantry::sched
