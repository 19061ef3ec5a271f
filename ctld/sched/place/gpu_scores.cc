#include "ctld/sched/place/gpu_scores.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/assert.h"

namespace gantry::sched {
namespace {

constexpr std::int32_t kCpuSteps = 32;
constexpr std::int64_t kMemorySteps = 16;
constexpr std::int64_t kGiB = std::int64_t{1} << 30;

std::int64_t whole_gib(std::int64_t bytes) {
  return (bytes + kGiB - 1) / kGiB * kGiB;
}

}  // namespace

GpuNeed need_of(const JobClass& cls) {
  const Demand& d = cls.demand;
  const std::uint32_t tasks = (d.tasks + d.min_nodes - 1) / d.min_nodes;
  GpuNeed need;
  need.cpus = static_cast<std::int32_t>(d.cores_for(tasks));
  if (d.memory_rule == MemoryRule::per_node) need.memory = whole_gib(d.memory);
  if (d.memory_rule == MemoryRule::per_cpu) need.memory = whole_gib(d.memory * need.cpus);
  need.gpus = d.gpus;
  need.part = thousandths_of_gpu(d.gpu_share).narrow<std::uint32_t>().value();
  return need;
}

bool operator==(const GpuScores::State& a, const GpuScores::State& b) {
  return a.room.cpus == b.room.cpus && a.room.memory == b.room.memory &&
         a.room.gpus == b.room.gpus && a.room.free == b.room.free && a.owners == b.owners &&
         a.beyond == b.beyond && a.cpu_step == b.cpu_step && a.idle == b.idle &&
         a.sharing == b.sharing;
}

std::size_t GpuScores::Hash::operator()(const State& s) const {
  std::uint64_t h = 0x9E3779B97F4A7C15ull;
  const auto add = [&](std::uint64_t v) {
    h = (h ^ v) * 0xFF51AFD7ED558CCDull;
    h ^= h >> 32;
  };
  add(static_cast<std::uint64_t>(s.room.cpus) << 32 | static_cast<std::uint32_t>(s.cpu_step));
  add(static_cast<std::uint64_t>(s.room.memory));
  add(std::uint64_t{s.beyond} << 32 | std::uint64_t{s.room.gpus} << 2 | (s.idle ? 2 : 0) |
      (s.sharing ? 1 : 0));
  for (std::uint32_t i = 0; i < s.room.gpus; ++i)
    add(std::uint64_t{s.owners[i]} << 16 | s.room.free[i]);
  return static_cast<std::size_t>(h);
}

// ---- the mix

void GpuScores::expect(const GpuMix& mix) {
  changes_ = counted_ = 0;
  for (const auto& [need, count] : mix) counted_ += count;
  if (mix == mix_) return;
  mix_ = mix;
  fragmentation_ = Fragmentation(mix_);
  ++generation_;
  asks_.clear();
  asking_ = asks_.end();
}

void GpuScores::count(const Running& running, const Queue& queue) {
  if (changes_ <= counted_) return;
  GpuMix mix, waiting;
  std::uint64_t all = 0, wait = 0;
  for (const auto& [group, slots] : running.groups())
    for (const std::uint32_t slot : slots)
      for (const Use& use : running[slot].uses) {
        GpuNeed need{static_cast<std::int32_t>(use.granted_cpus), whole_gib(use.room.memory),
                     use.granted_gpus, 0};
        bool slices = false;
        for (const GpuGrant& d : use.devices) {
          slices = slices || d.profile;
          if (is_part(d)) need.part += d.thousandths.value();
        }
        if (slices) continue;
        ++mix[need];
        ++all;
      }
  for (const std::uint32_t p : queue.busy())
    for (const auto& [share, lines] : queue.partition(p).users)
      for (const LinePlace& place : lines) {
        const Line& line = queue.line(place.first.line);
        const JobClass& cls = queue.job_class(line.class_index);
        if (!cls.key.shape.gpu_slice.empty()) continue;
        const std::uint64_t count = line.jobs.size() * cls.demand.min_nodes;
        waiting[need_of(cls)] += count;
        wait += count;
      }
  if (all + wait == 0) return;
  for (const auto& [need, count] : waiting)
    if (const std::uint64_t some = all > 0 && wait > all ? count * all / wait : count; some > 0)
      mix[need] += some;
  expect(mix);
}

// ---- nodes

GpuScores::State GpuScores::state_of(const Grid& grid, std::uint32_t n) {
  const Room &size = grid.room(n), &free = grid.free(n);
  const GridNode& node = grid.node(n);
  State s;
  s.cpu_step = std::max(1, size.cpus / kCpuSteps);
  s.room.cpus = std::max(0, free.cpus) / s.cpu_step * s.cpu_step;
  const std::int64_t step = std::max<std::int64_t>(1, size.memory / kMemorySteps);
  s.room.memory = std::max<std::int64_t>(0, free.memory) / step * step;
  s.idle = grid.idle(n);
  s.sharing = node.gpu_sharing;
  s.owners.fill(kNoIndex);
  std::vector<std::pair<std::uint16_t, std::uint32_t>> shared;  // (thousandths left, tenant)
  node.shares.each([&](GpuThousandths taken, PartitionId tenant) {
    if (taken < kOneGpu)
      shared.emplace_back((kOneGpu - taken).narrow<std::uint16_t>().value(), tenant.value());
  });
  std::sort(shared.begin(), shared.end());
  const std::int32_t untouched = std::max(0, free.gpus - node.shares.shared());
  for (std::int32_t i = 0; i < untouched; ++i) shared.emplace_back(kWholeGpu, kNoIndex);
  for (const auto& [left, owner] : shared) {
    if (s.room.gpus == kMostGpus) {
      ++s.beyond;
      continue;
    }
    s.owners[s.room.gpus] = owner;
    s.room.free[s.room.gpus++] = left;
  }
  return s;
}

void GpuScores::settle(Grid& grid) {
  for (const std::uint32_t n : grid.take_changed()) {
    if (at_.size() <= n) at_.resize(std::size_t{n} + 1, kNone);
    if (idle_gpus_.words() * 64 <= n) {
      idle_gpus_.resize(std::size_t{n} + 1);
      gpu_nodes_.resize(std::size_t{n} + 1);
    }
    const bool has_gpus = grid.room(n).gpus > 0;
    if (has_gpus != gpu_nodes_.test(n)) with_gpus_ += has_gpus ? 1 : -1u;
    gpu_nodes_.clear(n);
    idle_gpus_.clear(n);
    if (has_gpus) gpu_nodes_.set(n);
    const State state = has_gpus ? state_of(grid, n) : State{};
    if (state.room.gpus == 0) {
      move(n, kNone);
      continue;
    }
    idle_gpus_.set(n);
    if (at_[n] != kNone && states_[at_[n]].state == state) continue;
    const auto [it, made] = known_.try_emplace(state, static_cast<std::uint32_t>(states_.size()));
    if (made) {
      states_.emplace_back();
      states_.back().state = state;
    }
    move(n, it->second);
  }
  if (states_.size() > kMostStates) forget_states();
}

void GpuScores::move(std::uint32_t node, std::uint32_t to) {
  const std::uint32_t from = std::exchange(at_[node], to);
  if (from != kNone) {
    Kept& old = states_[from];
    old.nodes.erase(std::lower_bound(old.nodes.begin(), old.nodes.end(), node));
    if (old.nodes.empty()) {
      states_[live_.back()].live_at = old.live_at;
      live_[old.live_at] = live_.back();
      live_.pop_back();
    }
  }
  if (to == kNone) return;
  Kept& now = states_[to];
  if (now.nodes.empty()) {
    now.live_at = static_cast<std::uint32_t>(live_.size());
    live_.push_back(to);
  }
  now.nodes.insert(std::lower_bound(now.nodes.begin(), now.nodes.end(), node), node);
}

// Forgets all states that no node has now.
void GpuScores::forget_states() {
  std::vector<Kept> kept;
  known_.clear();
  for (const std::uint32_t s : live_) {
    states_[s].live_at = static_cast<std::uint32_t>(kept.size());
    for (const std::uint32_t n : states_[s].nodes) at_[n] = states_[s].live_at;
    known_.emplace(states_[s].state, states_[s].live_at);
    kept.push_back(std::move(states_[s]));
  }
  for (std::uint32_t s = 0; s < kept.size(); ++s) live_[s] = s;
  states_ = std::move(kept);
  asks_.clear();
  asking_ = asks_.end();
}

// ---- a search

void GpuScores::ask(const JobClass& cls) {
  Ask ask{need_of(cls), cls.demand.gpu_share > DevicePart{} ? cls.key.partition.value() : kNoIndex};
  if (cls.demand.exclusive) ask.first.cpus = std::numeric_limits<std::int32_t>::max();
  if (asking_ != asks_.end() && asking_->first == ask) return;
  asking_ = asks_.find(ask);
  if (asking_ != asks_.end()) return;
  if (asks_.size() >= kMostAsks) asks_.clear();
  asking_ = asks_.emplace(std::move(ask), std::vector<std::int8_t>{}).first;
}

std::optional<GpuRoom> GpuScores::after(const State& s) const {
  const auto& [need, tenant] = asking_->first;
  GpuRoom room = s.room;
  const bool all_cpus = need.cpus == std::numeric_limits<std::int32_t>::max();
  if (all_cpus ? !s.idle : room.cpus + s.cpu_step <= need.cpus) return std::nullopt;
  room.cpus = all_cpus ? 0 : std::max(0, room.cpus - need.cpus);
  room.memory = std::max<std::int64_t>(0, room.memory - need.memory);
  std::uint32_t left = need.gpus;
  for (std::uint32_t i = 0; i < room.gpus && left > 0; ++i)
    if (room.free[i] == kWholeGpu && s.owners[i] == kNoIndex) {
      room.free[i] = 0;
      --left;
    }
  if (left > s.beyond) return std::nullopt;
  if (need.part == 0) return room;
  // The same choice as in choose_part(): next to other parts of the tenant, on the fullest GPU on
  // which it fits.
  if (!s.sharing) return std::nullopt;
  std::optional<std::uint32_t> best;
  for (std::uint32_t i = 0; i < room.gpus; ++i)
    if (s.owners[i] == tenant && room.free[i] >= need.part &&
        (!best || room.free[i] < room.free[*best]))
      best = i;
  for (std::uint32_t i = 0; i < room.gpus && !best; ++i)
    if (s.owners[i] == kNoIndex) best = i;
  if (!best) return s.beyond > 0 ? std::optional(room) : std::nullopt;
  room.free[*best] = static_cast<std::uint16_t>(room.free[*best] - need.part);
  return room;
}

std::optional<int> GpuScores::score_of(std::uint32_t s) {
  GANTRY_ASSERT(asking_ != asks_.end(), "a score for a request that was not asked for");
  std::vector<std::int8_t>& scores = asking_->second;
  if (scores.size() <= s) scores.resize(states_.size(), kNotKnown);
  std::int8_t& known = scores[s];
  if (known == kNotKnown) {
    Kept& kept = states_[s];
    const auto room = after(kept.state);
    if (!room) {
      known = kDoesNotDo;
    } else {
      if (kept.amount_of != generation_) {
        kept.amount = fragmentation_.amount(kept.state.room);
        kept.amount_of = generation_;
      }
      known = static_cast<std::int8_t>(fragmentation_.score(kept.amount, *room));
    }
  }
  return known == kDoesNotDo ? std::nullopt : std::optional<int>(known);
}

std::optional<int> GpuScores::score(std::uint32_t node) {
  if (node >= at_.size() || at_[node] == kNone) return kMostScore / 2;
  return score_of(at_[node]);
}

}  // namespace gantry::sched
