#include "ctld/sched/gpu/mig.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <map>

#include "common/assert.h"

namespace gantry::sched {
namespace {

constexpr std::uint32_t kMostLimits = 16;  // each takes 4 bits of State::counts
constexpr std::uint32_t kMostCount = 15;

// How many fit if only this profile is made: starts ascend, so the first possible start is best.
std::uint32_t most_alone(const MigProfile& p, std::uint32_t compute) {
  std::uint32_t n = 0, end = 0;
  for (const std::uint32_t start : p.starts)
    if (start >= end) {
      ++n;
      end = start + p.memory_slices;
    }
  return std::min(n, compute / p.compute_slices);
}

// True for profiles with media engines ("1g.10gb+me", "1g.24gb+me.all"), of which a GPU has one
// set.
bool has_media(std::string_view name) {
  const std::size_t plus = name.find('+');
  return plus != std::string_view::npos && name.substr(plus + 1).starts_with("me");
}

}  // namespace

Result<MigTable> MigTable::compile(const MigGeometry& geometry) {
  ASSIGN(catalog, MigCatalog::read(geometry));
  MigTable t(std::move(*catalog));
  t.find_limits();
  if (t.limits_.size() > kMostLimits || !t.find_states())
    return fail(ErrorCode::malformed,
                fmt::format("the MIG geometry of model \"{}\" cannot be used: it has more than {} "
                            "states",
                            geometry.model, kMostMigStates));
  t.count_fits();
  return t;
}

void MigTable::find_limits() {
  Limit media;
  for (std::uint32_t i = 0; i < profiles().size(); ++i) {
    if (!has_media(profiles()[i].name)) continue;
    media.profiles |= std::uint32_t{1} << i;
    media.most = std::max(media.most, profiles()[i].max_instances);
  }
  if (media.profiles != 0 && media.most < memory_slices()) limits_.push_back(media);
  for (std::uint32_t i = 0; i < profiles().size(); ++i) {
    const MigProfile& p = profiles()[i];
    const bool covered = has_media(p.name) && p.max_instances == media.most;
    if (!covered && p.max_instances < most_alone(p, compute_slices()))
      limits_.push_back({std::uint32_t{1} << i, p.max_instances});
  }
  GANTRY_ASSERT(std::all_of(limits_.begin(), limits_.end(),
                            [](const Limit& l) { return l.most <= kMostCount; }),
                "a limit that can bind is less than the slices of a GPU");
}

bool MigTable::add(State& s, MigPlacementId p) const {
  const MigPlacement& at = placements()[p];
  const MigProfile& profile = profiles()[at.profile];
  if ((s.mask & at.mask) != 0 || s.compute + profile.compute_slices > compute_slices())
    return false;
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

// Finds all states that can be reached from the empty GPU; returns false if there are too many.
bool MigTable::find_states() {
  std::map<State, MigState> known{{State{}, 0}};
  std::vector<State> open{State{}};
  while (!open.empty()) {
    const State from = open.back();
    open.pop_back();
    for (std::size_t p = 0; p < placements().size(); ++p) {
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
  next_.assign(state_.size() * placements().size(), kNoMigState);
  before_ = next_;
  for (auto& [from, number] : known)
    for (std::size_t p = 0; p < placements().size(); ++p) {
      State to = from;
      if (!add(to, static_cast<MigPlacementId>(p))) continue;
      const MigState next = known.at(to);
      state_[number].legal |= std::uint64_t{1} << p;
      next_[number * placements().size() + p] = next;
      before_[next * placements().size() + p] = number;
    }
  return true;
}

// Starts with the highest number, because the next states of a state have higher numbers.
void MigTable::count_fits() {
  const std::size_t n = profiles().size();
  fits_.assign(state_.size() * n, 0);
  for (std::size_t s = state_.size(); s-- > 0;)
    for (std::uint64_t left = state_[s].legal; left != 0; left &= left - 1) {
      const auto p = static_cast<MigPlacementId>(std::countr_zero(left));
      const std::uint32_t profile = placements()[p].profile;
      const MigState to = with(static_cast<MigState>(s), p);
      const auto more = static_cast<std::uint8_t>(fits_[to * n + profile] + 1);
      fits_[s * n + profile] = std::max(fits_[s * n + profile], more);
    }
}

MigState MigTable::without(MigState s, MigPlacementId p) const {
  const MigState before = before_[std::size_t{s} * placements().size() + p];
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
    return std::pair{profiles()[p].memory_slices, profiles()[p].compute_slices};
  };
  for (std::uint32_t p = 0; p < profiles().size(); ++p)
    if (fits(s, p) > 0 && (!best || size(p) > size(*best))) best = p;
  return best;
}

std::int64_t MigTable::fragmentation(MigState s, std::span<const std::uint32_t> weight) const {
  GANTRY_ASSERT(weight.size() == profiles().size(), "a weight for each profile");
  std::int64_t sum = 0;
  for (std::uint32_t p = 0; p < profiles().size(); ++p) {
    const std::int64_t usable = std::int64_t{fits(s, p)} * profiles()[p].memory_slices;
    sum += std::int64_t{weight[p]} * (std::int64_t{memory_free(s)} - usable);
  }
  return sum;
}

}  // namespace gantry::sched
