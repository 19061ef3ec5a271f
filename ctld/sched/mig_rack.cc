#include "ctld/sched/mig_rack.h"

#include <algorithm>
#include <charconv>

#include "common/assert.h"

namespace gantry::sched {

std::uint32_t compute_slices_of(std::string_view profile) {
  std::uint32_t n = 0;
  const auto [end, error] = std::from_chars(profile.data(), profile.data() + profile.size(), n);
  const bool named =
      error == std::errc{} &&
      std::string_view(end, static_cast<std::size_t>(profile.end() - end)).starts_with("g.");
  return named && n <= kMostMigSlices ? n : 0;
}

const MigShapes::Shape* MigShapes::of(const MigGeometry& geometry) {
  for (const auto& shape : shapes_)
    if (shape->geometry == geometry) return shape.get();
  auto table = MigTable::compile(geometry);
  if (!table) return nullptr;
  shapes_.push_back(std::make_unique<Shape>(geometry, std::move(*table)));
  return shapes_.back().get();
}

void MigRack::set(std::span<const GpuView> devices, const std::vector<MigGeometry>& geometries,
                  MigShapes& shapes) {
  gpus_.clear();
  for (const GpuView& device : devices) {
    if (!device.mig) continue;
    for (const MigGeometry& g : geometries)
      if (const auto* shape = g.model == device.model ? shapes.of(g) : nullptr; shape != nullptr)
        gpus_.push_back({device.index, shape, 0, 0});
  }
}

bool MigRack::has(std::string_view profile) const {
  return std::any_of(gpus_.begin(), gpus_.end(),
                     [&](const Gpu& g) { return g.shape->table.profile_named(profile); });
}

std::uint32_t MigRack::compute_slices() const {
  std::uint32_t sum = 0;
  for (const Gpu& g : gpus_) sum += g.shape->table.compute_slices();
  return sum;
}

std::uint32_t MigRack::compute_of(std::span<const GpuGrant> devices) const {
  std::uint32_t sum = 0;
  for (const GpuGrant& d : devices)
    for (const Gpu& g : gpus_)
      if (const auto p = d.profile && g.index == d.gpu ? g.shape->table.profile_of_id(*d.profile)
                                                       : std::nullopt)
        sum += g.shape->table.profiles()[*p].compute_slices;
  return sum;
}

std::uint32_t MigRack::fits(std::string_view profile) const {
  std::uint32_t sum = 0;
  for (const Gpu& g : gpus_)
    if (const auto p = g.shape->table.profile_named(profile))
      sum += g.shape->table.fits(g.state, *p);
  return sum;
}

std::uint32_t MigRack::thousandths(std::string_view profile) const {
  for (const Gpu& g : gpus_)
    if (const auto p = g.shape->table.profile_named(profile))
      return g.shape->table.share(*p).thousandths();
  return 0;
}

std::vector<GpuGrant> MigRack::choose(std::string_view profile, std::uint32_t count) const {
  std::vector<GpuGrant> chosen;
  std::vector<Gpu> gpus = gpus_;
  while (chosen.size() < count) {
    Gpu* best = nullptr;
    std::uint32_t its = 0;
    for (Gpu& g : gpus) {
      const MigTable& t = g.shape->table;
      const auto p = t.profile_named(profile);
      if (!p || t.fits(g.state, *p) == 0) continue;
      if (best != nullptr && t.memory_used(g.state) <= best->shape->table.memory_used(best->state))
        continue;
      best = &g;
      its = *p;
    }
    GANTRY_ASSERT(best != nullptr, "fewer slices fit than counted");
    const MigTable& t = best->shape->table;
    const auto at = best->shape->order.start(best->state, t.placements_of(its), 0);
    GANTRY_ASSERT(at.has_value(), "a place for a slice that fits");
    best->state = t.with(best->state, *at);
    chosen.push_back({best->index, t.profiles()[its].id, t.placements()[*at].start,
                      static_cast<std::uint16_t>(t.share(its).thousandths())});
  }
  std::sort(chosen.begin(), chosen.end(), [](const GpuGrant& a, const GpuGrant& b) {
    return std::pair{a.gpu, a.start} < std::pair{b.gpu, b.start};
  });
  return chosen;
}

void MigRack::mark(std::span<const GpuGrant> devices, bool taken) {
  for (const GpuGrant& d : devices) {
    if (!d.profile) continue;
    for (Gpu& g : gpus_) {
      const MigTable& t = g.shape->table;
      const auto p = g.index == d.gpu ? t.profile_of_id(*d.profile) : std::nullopt;
      const auto at = p ? t.placement(*p, d.start) : std::nullopt;
      if (!at) continue;
      const std::uint64_t bit = std::uint64_t{1} << *at;
      const std::uint64_t layout = taken ? g.layout | bit : g.layout & ~bit;
      const MigState state = t.state_of(layout);
      // The driver's table has changed under a job: its slice is not seen, and the core refuses
      // what would overlap it.
      if (state == kNoMigState) continue;
      g.layout = layout;
      g.state = state;
    }
  }
}

}  // namespace gantry::sched
