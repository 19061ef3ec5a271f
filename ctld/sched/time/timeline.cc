#include "ctld/sched/time/timeline.h"

#include <algorithm>
#include <limits>

#include "common/assert.h"

namespace gantry::sched {

Instant Timeline::end_of(Instant start, const std::optional<Duration>& limit) {
  if (!limit || limit->us > kNever.us - start.us) return kNever;
  return start + *limit;
}

std::optional<JobId> Timeline::reserved_in(std::uint32_t node, Instant from, Instant until,
                                           JobId but) const {
  if (!reserved_.test(node)) return std::nullopt;
  for (const Held& r : ahead_[node].reservations)
    if (r.job != but && r.from < until && from < r.until) return r.job;
  return std::nullopt;
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
  started_.clear();
  fit_grid();
}

void Timeline::fit_grid() {
  (void)windows_.speak_for("");
  reserved_.resize(grid_.size());
  ahead_.resize(grid_.size());
  notes_.notes.resize(grid_.size());
}

void Timeline::resume(Instant now) {
  now_ = now;
  std::size_t kept = 0, sorted = 0;
  for (std::size_t i = 0; i < freed_.size(); ++i) {
    if (!freed_[i].reserved || freed_[i].at <= now) continue;
    if (kept != i) freed_[kept] = freed_[i];
    ++kept;
    sorted += i < sorted_freed_ ? 1 : 0;
  }
  freed_.resize(kept);
  sorted_freed_ = sorted;
  started_.clear();
  for (const std::uint32_t n : std::vector<std::uint32_t>(reserved_nodes_)) clear(n);
  fit_grid();
}

void Timeline::clear(std::uint32_t node) {
  if (!reserved_.test(node)) return;
  Ahead& ahead = ahead_[node];
  if (!ahead.reservations.empty()) return;
  ahead.checkpoints.clear();
  reserved_.clear(node);
  std::erase(reserved_nodes_, node);
}

Room Timeline::spare_at(const Ahead& ahead, Instant at, Room room) const {
  for (const Held& r : ahead.reservations)
    if (r.from <= at && at < r.until) room -= r.room;
  return room;
}

std::uint32_t Timeline::fits(std::uint32_t node, const Demand& demand, Instant from, Instant until,
                             const Room& room) const {
  const Room& size = grid_.room(node);
  if (windows_.closed(node)) {
    if (windows_.in(node, from, until) != nullptr) return 0;
    const Window* own = windows_.own();
    if (own != nullptr && (from < own->from || until > own->until)) return 0;
  }
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
  if (!may_fit_less(node)) return std::nullopt;
  std::optional<Instant> end;
  const auto offer = [&](Instant at) {
    if (at >= until && (!end || at - (until - from) < *end)) end = at - (until - from);
  };
  for (const Checkpoint& c : ahead_[node].checkpoints) offer(c.at);
  windows_.each_closing(node, offer);
  return end;
}

Room Timeline::room_at(std::uint32_t n, Instant at) const {
  Room room = grid_.free(n);
  for (const std::uint32_t slot : running_.on_node(n)) {
    const Placement& p = running_[slot];
    if (!p.ends_by) continue;
    if (*p.ends_by > now_ ? *p.ends_by <= at : now_ + kOverdue <= at) room += p.use_of(n).room;
  }
  for (const Freed& freed : started_)
    if (freed.node == n && freed.at <= at) room += freed.room;
  return room;
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

void Timeline::take_off(Checkpoint& point, const Room& need) {
  point.spare -= need;
  // A node that shrank while its jobs run may have negative amounts of resources that the job does
  // not ask for.
  const auto there = [](auto spare, auto asked) {
    return asked == decltype(asked){} || spare >= decltype(spare){};
  };
  GANTRY_ASSERT(there(point.spare.cpus, need.cpus) && there(point.spare.memory, need.memory) &&
                    there(point.spare.scratch, need.scratch) &&
                    there(point.spare.gpus, need.gpus) &&
                    there(point.spare.gpu_thousandths(), need.gpu_thousandths()) &&
                    std::equal(need.gres.begin(), need.gres.end(), point.spare.gres.begin(),
                               [&](auto asked, auto spare) { return there(spare, asked); }),
                "room was reserved twice");
}

void Timeline::started(const Demand& demand, const std::vector<Share>& shares,
                       std::optional<Instant> until) {
  for (const Share& share : shares) {
    const Room need = need_for(demand, grid_.room(share.node), share.tasks);
    if (until) {
      freed_.push_back({*until, share.node, false, need});
      started_.push_back(freed_.back());
    }
    if (!reserved_.test(share.node)) continue;
    for (Checkpoint& c : ahead_[share.node].checkpoints)
      if (!until || c.at < *until) take_off(c, need);
  }
}

std::optional<Slot> Timeline::earliest(const JobClass& cls, const Bits& allowed, Instant from,
                                       std::uint64_t& steps, Instant before) {
  if (const Window* own = windows_.own()) from = std::max(from, own->from);
  if (from >= before) return std::nullopt;
  sort_freed();
  return walk_ends({*this, grid_, running_, windows_, freed_, notes_}, cls, allowed, from, before,
                   steps);
}

void Timeline::reserve(const JobClass& cls, const Slot& slot, JobId job) {
  const Instant until = end_of(slot.start, cls.key.least_limit());
  for (std::size_t i = 0; i < slot.shares.size(); ++i) {
    const auto [node, tasks] = slot.shares[i];
    const Room need = need_for(cls.demand, grid_.room(node), tasks);
    Ahead& ahead = ahead_of(node);
    auto& points = ahead.checkpoints;
    auto at = std::lower_bound(points.begin(), points.end(), slot.start,
                               [](const Checkpoint& c, Instant t) { return c.at < t; });
    if (at == points.end() || at->at != slot.start)
      at = points.insert(at, {slot.start, spare_at(ahead, slot.start, slot.room[i])});
    for (; at != points.end() && at->at < until; ++at) take_off(*at, need);
    ahead.reservations.push_back({job, slot.start, until, need, tasks});
    if (cls.key.least_limit()) freed_.push_back({until, node, true, {}});
  }
}

bool Timeline::keep(const JobClass& cls, JobId job, Instant start,
                    const std::vector<Share>& shares) {
  const Instant until = end_of(start, cls.key.least_limit());
  Slot slot{start, shares, {}};
  for (const Share& share : shares) {
    slot.room.push_back(room_at(share.node, start));
    if (!grid_.available(share.node) ||
        fits(share.node, cls.demand, start, until, slot.room.back()) < share.tasks)
      return false;
  }
  reserve(cls, slot, job);
  return true;
}

void Timeline::lift(JobId job, Instant start, const std::vector<Share>& shares) {
  for (const Share& share : shares) {
    Ahead& ahead = ahead_[share.node];
    const auto mine = std::find_if(
        ahead.reservations.begin(), ahead.reservations.end(),
        [&](const Held& r) { return r.job == job && r.from == start && r.tasks == share.tasks; });
    GANTRY_ASSERT(mine != ahead.reservations.end(), "a reservation that is not there was lifted");
    for (Checkpoint& c : ahead.checkpoints)
      if (mine->from <= c.at && c.at < mine->until) c.spare += mine->room;
    ahead.reservations.erase(mine);
    // Keeps this checkpoint where a reservation begins: nothing would update it at another time.
    if (std::none_of(ahead.reservations.begin(), ahead.reservations.end(),
                     [&](const Held& r) { return r.from == start; }))
      std::erase_if(ahead.checkpoints, [&](const Checkpoint& c) { return c.at == start; });
  }
}

void Timeline::moved(const Placement& p, Instant by, std::optional<Instant> limit) {
  const Instant end = limit.value_or(kNever);
  for (const Use& use : p.uses) {
    if (!reserved_.test(use.node)) continue;
    for (Checkpoint& c : ahead_[use.node].checkpoints) {
      if (by <= c.at && c.at < end) c.spare += use.room;
      if (end <= c.at && c.at < by) c.spare -= use.room;
    }
  }
}

}  // namespace gantry::sched
