#include "ctld/sched/gpu/mig.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "common/assert.h"

namespace gantry::sched {
namespace {

constexpr std::uint32_t kMostLimits = 16;  // 4 bits of State::counts each
constexpr std::uint32_t kMostCount = 15;

std::uint32_t bits(std::uint32_t start, std::uint32_t size) {
  return ((std::uint32_t{1} << size) - 1) << start;
}

// How many fit if only this profile is made: starts are ascending, so the first possible is best.
std::uint32_t most_alone(const MigProfile& p, std::uint32_t compute) {
  std::uint32_t n = 0, end = 0;
  for (const std::uint32_t start : p.starts)
    if (start >= end) {
      ++n;
      end = start + p.memory_slices;
    }
  return std::min(n, compute / p.compute_slices);
}

// "1g.10gb+me", "1g.24gb+me.all": has media engines, of which a GPU has one set to give.
bool has_media(std::string_view name) {
  const std::size_t plus = name.find('+');
  return plus != std::string_view::npos && name.substr(plus + 1).starts_with("me");
}

std::string why_not(const MigGeometry& g) {
  const auto in = [](std::uint32_t v, std::uint32_t most) { return v >= 1 && v <= most; };
  if (!in(g.compute_slices, kMostMigSlices) || !in(g.memory_slices, kMostMigSlices))
    return fmt::format("{} compute and {} memory slices, not 1 to {}", g.compute_slices,
                       g.memory_slices, kMostMigSlices);
  if (!in(static_cast<std::uint32_t>(g.profiles.size()), kMostMigProfiles))
    return fmt::format("{} profiles, not 1 to {}", g.profiles.size(), kMostMigProfiles);
  std::size_t placements = 0;
  std::set<std::uint32_t> ids;
  std::set<std::string_view> names;
  for (const MigProfile& p : g.profiles) {
    const auto bad = [&](std::string_view what) {
      return fmt::format("profile \"{}\" (id {}): {}", p.name, p.id, what);
    };
    if (!in(p.compute_slices, g.compute_slices)) return bad("its compute slices are not the GPU's");
    if (!in(p.memory_slices, g.memory_slices)) return bad("its memory slices are not the GPU's");
    if (p.max_instances == 0) return bad("it may never be made");
    if (!std::is_sorted(p.starts.begin(), p.starts.end()) ||
        std::adjacent_find(p.starts.begin(), p.starts.end()) != p.starts.end())
      return bad("its starts do not ascend");
    if (p.starts.empty() || p.starts.back() + p.memory_slices > g.memory_slices)
      return bad("it has no start, or one that ends behind the GPU");
    if (!ids.insert(p.id).second || !names.insert(p.name).second) return bad("it is there twice");
    placements += p.starts.size();
  }
  if (placements > kMostMigPlacements)
    return fmt::format("{} placements, more than {}", placements, kMostMigPlacements);
  return {};
}

}  // namespace

GpuThousandths MigShare::thousandths() const {
  return GpuThousandths{kOneGpu.value() * (compute * of_memory + memory * of_compute) /
                        (2 * of_compute * of_memory)};
}

Result<MigTable> MigTable::compile(const MigGeometry& geometry) {
  const auto bad = [&](std::string_view why) {
    return fail(
        ErrorCode::malformed,
        fmt::format("the MIG geometry of model \"{}\" cannot be used: {}", geometry.model, why));
  };
  if (const std::string why = why_not(geometry); !why.empty()) return bad(why);
  MigTable t;
  t.model_ = geometry.model;
  t.compute_ = geometry.compute_slices;
  t.memory_ = geometry.memory_slices;
  t.profiles_ = geometry.profiles;
  for (std::uint32_t i = 0; i < t.profiles_.size(); ++i) {
    const MigProfile& p = t.profiles_[i];
    if (!t.full_ && p.compute_slices == t.compute_ && p.memory_slices == t.memory_) t.full_ = i;
    t.of_.push_back(0);
    for (const std::uint32_t start : p.starts) {
      t.of_.back() |= std::uint64_t{1} << t.placements_.size();
      t.placements_.push_back({static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(start),
                               bits(start, p.memory_slices)});
    }
  }
  t.find_limits();
  if (t.limits_.size() > kMostLimits || !t.find_states())
    return bad(fmt::format("it has more than {} states", kMostMigStates));
  t.count_fits();
  return t;
}

void MigTable::find_limits() {
  Limit media;
  for (std::uint32_t i = 0; i < profiles_.size(); ++i) {
    if (!has_media(profiles_[i].name)) continue;
    media.profiles |= std::uint32_t{1} << i;
    media.most = std::max(media.most, profiles_[i].max_instances);
  }
  if (media.profiles != 0 && media.most < memory_) limits_.push_back(media);
  for (std::uint32_t i = 0; i < profiles_.size(); ++i) {
    const MigProfile& p = profiles_[i];
    const bool covered = has_media(p.name) && p.max_instances == media.most;
    if (!covered && p.max_instances < most_alone(p, compute_))
      limits_.push_back({std::uint32_t{1} << i, p.max_instances});
  }
  GANTRY_ASSERT(std::all_of(limits_.begin(), limits_.end(),
                            [](const Limit& l) { return l.most <= kMostCount; }),
                "a limit that can bind is less than the slices of a GPU");
}

bool MigTable::add(State& s, MigPlacementId p) const {
  const MigPlacement& at = placements_[p];
  const MigProfile& profile = profiles_[at.profile];
  if ((s.mask & at.mask) != 0 || s.compute + profile.compute_slices > compute_) return false;
  for (std::size_t i = 0; i < limits_.size(); ++i) {
    if (((limits_[i].profiles >> at.profile) & 1) == 0) continue;
    if (((s.counts >> (4 * i)) & 15) >= limits_[i].most) return false;
    s.counts += std::uint64_t{1} << (4 * i);
  }
  s.mask |= at.mask;
  s.memory += profile.memory_slices;
  s.compute += profile.compute_slices;
  return true;
}

// All that can be reached from the empty GPU; false if there are too many.
bool MigTable::find_states() {
  std::map<State, MigState> known{{State{}, 0}};
  std::vector<State> open{State{}};
  while (!open.empty()) {
    const State from = open.back();
    open.pop_back();
    for (std::size_t p = 0; p < placements_.size(); ++p) {
      State to = from;
      if (!add(to, static_cast<MigPlacementId>(p)) || !known.emplace(to, 0).second) continue;
      if (known.size() > kMostMigStates) return false;
      open.push_back(to);
    }
  }
  for (auto& [state, number] : known) {
    number = static_cast<MigState>(state_.size());
    state_.push_back(state);
  }
  next_.assign(state_.size() * placements_.size(), kNoMigState);
  before_ = next_;
  for (auto& [from, number] : known)
    for (std::size_t p = 0; p < placements_.size(); ++p) {
      State to = from;
      if (!add(to, static_cast<MigPlacementId>(p))) continue;
      const MigState next = known.at(to);
      state_[number].legal |= std::uint64_t{1} << p;
      next_[number * placements_.size() + p] = next;
      before_[next * placements_.size() + p] = number;
    }
  return true;
}

// From the fullest state on: a next one has a higher number.
void MigTable::count_fits() {
  const std::size_t n = profiles_.size();
  fits_.assign(state_.size() * n, 0);
  for (std::size_t s = state_.size(); s-- > 0;)
    for (std::uint64_t left = state_[s].legal; left != 0; left &= left - 1) {
      const auto p = static_cast<MigPlacementId>(std::countr_zero(left));
      const std::uint32_t profile = placements_[p].profile;
      const MigState to = with(static_cast<MigState>(s), p);
      const auto more = static_cast<std::uint8_t>(fits_[to * n + profile] + 1);
      fits_[s * n + profile] = std::max(fits_[s * n + profile], more);
    }
}

std::optional<std::uint32_t> MigTable::profile_named(std::string_view name) const {
  for (std::uint32_t i = 0; i < profiles_.size(); ++i)
    if (profiles_[i].name == name) return i;
  return std::nullopt;
}

std::optional<std::uint32_t> MigTable::profile_of_id(std::uint32_t id) const {
  for (std::uint32_t i = 0; i < profiles_.size(); ++i)
    if (profiles_[i].id == id) return i;
  return std::nullopt;
}

MigShare MigTable::share(std::uint32_t profile) const {
  const MigProfile& p = profiles_[profile];
  return {p.compute_slices, compute_, p.memory_slices, memory_};
}

std::optional<MigPlacementId> MigTable::placement(std::uint32_t profile,
                                                  std::uint32_t start) const {
  for (std::uint64_t left = of_[profile]; left != 0; left &= left - 1) {
    const auto p = static_cast<MigPlacementId>(std::countr_zero(left));
    if (placements_[p].start == start) return p;
  }
  return std::nullopt;
}

MigState MigTable::without(MigState s, MigPlacementId p) const {
  const MigState before = before_[std::size_t{s} * placements_.size() + p];
  GANTRY_ASSERT(before != kNoMigState, "an instance was taken from a GPU that has none there");
  return before;
}

MigState MigTable::state_of(std::span<const MigPlacementId> layout) const {
  MigState s = 0;
  for (const MigPlacementId p : layout) {
    s = with(s, p);
    if (s == kNoMigState) break;
  }
  return s;
}

MigState MigTable::state_of(std::uint64_t layout) const {
  MigState s = 0;
  for (; layout != 0 && s != kNoMigState; layout &= layout - 1)
    s = with(s, static_cast<MigPlacementId>(std::countr_zero(layout)));
  return s;
}

std::optional<std::uint32_t> MigTable::largest(MigState s) const {
  std::optional<std::uint32_t> best;
  const auto size = [&](std::uint32_t p) {
    return std::pair{profiles_[p].memory_slices, profiles_[p].compute_slices};
  };
  for (std::uint32_t p = 0; p < profiles_.size(); ++p)
    if (fits(s, p) > 0 && (!best || size(p) > size(*best))) best = p;
  return best;
}

std::int64_t MigTable::fragmentation(MigState s, std::span<const std::uint32_t> weight) const {
  GANTRY_ASSERT(weight.size() == profiles_.size(), "a weight for each profile");
  std::int64_t sum = 0;
  for (std::uint32_t p = 0; p < profiles_.size(); ++p) {
    const std::int64_t usable = std::int64_t{fits(s, p)} * profiles_[p].memory_slices;
    sum += std::int64_t{weight[p]} * (std::int64_t{memory_free(s)} - usable);
  }
  return sum;
}

}  // namespace gantry::sched
