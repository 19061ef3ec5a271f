#include "ctld/sched/gpu/mig_catalog.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <set>

namespace gantry::sched {
namespace {

std::uint32_t bits(std::uint32_t start, std::uint32_t size) {
  return ((std::uint32_t{1} << size) - 1) << start;
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
    if (p.starts.empty() || p.starts.back() > g.memory_slices - p.memory_slices)
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

Result<MigCatalog> MigCatalog::read(const MigGeometry& geometry) {
  if (const std::string why = why_not(geometry); !why.empty())
    return fail(
        ErrorCode::malformed,
        fmt::format("the MIG geometry of model \"{}\" cannot be used: {}", geometry.model, why));
  MigCatalog t;
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
  return t;
}

std::optional<std::uint32_t> MigCatalog::profile_named(std::string_view name) const {
  for (std::uint32_t i = 0; i < profiles_.size(); ++i)
    if (profiles_[i].name == name) return i;
  return std::nullopt;
}

std::optional<std::uint32_t> MigCatalog::profile_of_id(std::uint32_t id) const {
  for (std::uint32_t i = 0; i < profiles_.size(); ++i)
    if (profiles_[i].id == id) return i;
  return std::nullopt;
}

MigShare MigCatalog::share(std::uint32_t profile) const {
  const MigProfile& p = profiles_[profile];
  return {p.compute_slices, compute_, p.memory_slices, memory_};
}

std::optional<MigPlacementId> MigCatalog::placement(std::uint32_t profile,
                                                    std::uint32_t start) const {
  for (std::uint64_t left = of_[profile]; left != 0; left &= left - 1) {
    const auto p = static_cast<MigPlacementId>(std::countr_zero(left));
    if (placements_[p].start == start) return p;
  }
  return std::nullopt;
}

}  // namespace gantry::sched
