#include "ctld/sched/gpu/mig_node.h"

#include <algorithm>
#include <charconv>

#include "common/assert.h"
#include "ctld/sched/gpu/gpu_share.h"

namespace gantry::sched {
namespace {

std::uint64_t existing_of(const MigTable& table, const GpuView& device) {
  std::uint64_t bits = 0;
  for (const MigSlice& s : device.slices) {
    const auto profile = table.profile_of_id(s.profile);
    const auto at = profile ? table.placement(*profile, s.start) : std::nullopt;
    if (at) bits |= mig_bit(*at);
  }
  return bits;
}

GpuGrant part_of(GpuGrant slice, DevicePart part) {
  slice.thousandths = weight_of_part(slice.thousandths, part).narrow<std::uint16_t>();
  slice.of_slice = part.narrow<std::uint16_t>();
  return slice;
}

}  // namespace

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
  shapes_.push_back(std::make_unique<Shape>(geometry, std::move(*table),
                                            static_cast<std::uint32_t>(shapes_.size())));
  return shapes_.back().get();
}

void MigNode::set(std::span<const GpuView> devices, const std::vector<MigGeometry>& geometries,
                  MigShapes& shapes) {
  gpus_.clear();
  for (const GpuView& device : devices) {
    if (!device.mig) continue;
    for (const MigGeometry& g : geometries) {
      const auto* shape = g.model == device.model ? shapes.of(g) : nullptr;
      if (shape == nullptr) continue;
      Gpu& gpu = gpus_.emplace_back();
      gpu.index = device.index;
      gpu.shape = shape;
      gpu.by_hand = device.by_hand;
      if (gpu.by_hand) gpu.existing = existing_of(shape->table, device);
    }
  }
}

bool MigNode::has(std::string_view profile) const {
  return std::any_of(gpus_.begin(), gpus_.end(),
                     [&](const Gpu& g) { return g.shape->table.profile_named(profile); });
}

std::uint32_t MigNode::compute_slices() const {
  std::uint32_t sum = 0;
  for (const Gpu& g : gpus_) sum += g.shape->table.compute_slices();
  return sum;
}

std::optional<std::pair<std::size_t, MigPlacementId>> MigNode::find(const GpuGrant& d) const {
  for (std::size_t i = 0; i < gpus_.size() && d.profile; ++i) {
    const MigTable& t = gpus_[i].shape->table;
    const auto p = gpus_[i].index == d.gpu ? t.profile_of_id(*d.profile) : std::nullopt;
    if (const auto at = p ? t.placement(*p, d.start) : std::nullopt) return std::pair{i, *at};
  }
  return std::nullopt;
}

SliceThousandths MigNode::compute_of(std::span<const GpuGrant> devices) const {
  SliceThousandths sum;
  for (const GpuGrant& d : devices)
    for (const Gpu& g : gpus_)
      if (const auto p = d.profile && g.index == d.gpu ? g.shape->table.profile_of_id(*d.profile)
                                                       : std::nullopt)
        sum += gantry::part_of(ComputeSlices{g.shape->table.profiles()[*p].compute_slices},
                               d.of_slice);
  return sum;
}

// Placements that the job may have on the GPU next to `also`, which it gets there already.
std::uint64_t MigNode::open(const Gpu& gpu, std::uint32_t profile, const MigAsk& ask,
                            MigState state, std::uint64_t also) const {
  const MigTable& t = gpu.shape->table;
  std::uint64_t open = t.legal(state, profile);
  if (gpu.by_hand) open &= gpu.existing;
  std::vector<MigReserved> others;
  for (const Hold& h : gpu.holds)
    if (h.owner != ask.owner) others.push_back({h.job, h.at, h.from});
  if (others.empty()) return open;
  for (std::uint64_t left = open; left != 0; left &= left - 1) {
    const auto p = static_cast<MigPlacementId>(std::countr_zero(left));
    if (!spares_reserved(t, gpu.used, others, also | mig_bit(p), ask.end)) open &= ~mig_bit(p);
  }
  return open;
}

bool MigNode::has_parts() const {
  return std::any_of(gpus_.begin(), gpus_.end(), [](const Gpu& g) { return !g.shared.empty(); });
}

// The fullest shared slice with room for the part; of equal ones the first. If places on its GPU
// are kept for others, the part must not make the slice last longer than before.
std::pair<const MigNode::Gpu*, const MigNode::Shared*> MigNode::beside(const MigAsk& ask) const {
  std::pair<const Gpu*, const Shared*> best{nullptr, nullptr};
  if (ask.part == DevicePart{}) return best;
  for (const Gpu& g : gpus_) {
    const bool kept = std::any_of(g.holds.begin(), g.holds.end(),
                                  [&](const Hold& h) { return h.owner != ask.owner; });
    for (const Shared& s : g.shared) {
      const MigTable& t = g.shape->table;
      if (s.tenant != ask.tenant || s.taken + ask.part > kWholeDevice ||
          (g.layout & mig_bit(s.at)) == 0 ||
          t.profiles()[t.placements()[s.at].profile].name != ask.profile)
        continue;
      const bool longer = std::none_of(g.used.begin(), g.used.end(), [&](const MigUsed& u) {
        return u.at == s.at && u.until >= ask.end;
      });
      if (kept && longer) continue;
      if (best.second == nullptr || s.taken > best.second->taken) best = {&g, &s};
    }
  }
  return best;
}

std::uint32_t MigNode::fits(const MigAsk& ask) const {
  std::uint32_t sum = room_beside(ask) ? 1 : 0;
  for (const Gpu& g : gpus_) {
    const MigTable& t = g.shape->table;
    const auto p = t.profile_named(ask.profile);
    if (!p) continue;
    if (!g.by_hand && g.holds.empty()) {
      sum += t.fits(g.state, *p);
      continue;
    }
    MigState state = g.state;
    std::uint64_t also = 0;
    while (const std::uint64_t places = open(g, *p, ask, state, also)) {
      const MigPlacementId at = *g.shape->order.start(state, places, g.existing);
      state = t.with(state, at);
      also |= mig_bit(at);
      ++sum;
    }
  }
  return sum;
}

GpuThousandths MigNode::thousandths(std::string_view profile) const {
  for (const Gpu& g : gpus_)
    if (const auto p = g.shape->table.profile_named(profile))
      return g.shape->table.share(*p).thousandths();
  return {};
}

struct MigNode::Try {
  const Gpu* gpu = nullptr;
  std::uint32_t profile = 0;
  MigState state = 0;
  std::uint64_t also = 0;
};

std::vector<GpuGrant> MigNode::choose(const MigAsk& ask, std::uint32_t count) const {
  std::vector<GpuGrant> chosen;
  if (const auto [gpu, shared] = beside(ask); shared != nullptr) {
    const MigTable& t = gpu->shape->table;
    const MigPlacement& at = t.placements()[shared->at];
    return {part_of({gpu->index, t.profiles()[at.profile].id, static_cast<std::uint16_t>(at.start),
                     t.share(at.profile).thousandths().narrow<std::uint16_t>()},
                    ask.part)};
  }
  std::vector<Try> tries;
  for (const Gpu& g : gpus_)
    if (const auto p = g.shape->table.profile_named(ask.profile))
      tries.push_back({&g, *p, g.state, 0});
  while (chosen.size() < count) {
    Try* best = nullptr;
    std::uint64_t best_open = 0;
    int best_rank = 0;
    for (Try& t : tries) {
      const bool first = t.gpu->by_hand || !t.gpu->holds.empty();
      const int rank = first ? -1 : t.gpu->shape->order.rank(t.state, t.profile);
      if (best != nullptr && rank >= best_rank) continue;
      const std::uint64_t places = open(*t.gpu, t.profile, ask, t.state, t.also);
      if (places == 0) continue;
      best = &t;
      best_open = places;
      best_rank = rank;
    }
    GANTRY_ASSERT(best != nullptr, "fewer slices fit than counted");
    const MigTable& t = best->gpu->shape->table;
    const auto at = best->gpu->shape->order.start(best->state, best_open, best->gpu->existing);
    GANTRY_ASSERT(at.has_value(), "a place for a slice that fits");
    best->state = t.with(best->state, *at);
    best->also |= mig_bit(*at);
    chosen.push_back({best->gpu->index, t.profiles()[best->profile].id, t.placements()[*at].start,
                      t.share(best->profile).thousandths().narrow<std::uint16_t>()});
  }
  if (ask.part > DevicePart{}) return {part_of(chosen.front(), ask.part)};
  std::sort(chosen.begin(), chosen.end(), [](const GpuGrant& a, const GpuGrant& b) {
    return std::pair{a.gpu, a.start} < std::pair{b.gpu, b.start};
  });
  return chosen;
}

// Takes or releases a part of a slice. Returns true if the slice was in use before and still is.
bool MigNode::mark_part(Gpu& g, MigPlacementId at, DevicePart part, PartitionId tenant,
                        bool taken) {
  auto s = std::find_if(g.shared.begin(), g.shared.end(),
                        [&](const Shared& one) { return one.at == at; });
  if (s == g.shared.end()) {
    if (!taken) return false;
    g.shared.push_back({at, tenant, part});
    return false;
  }
  GANTRY_ASSERT(s->tenant == tenant, "a slice shared by two tenants");
  if (taken) {
    s->taken += part;
    GANTRY_ASSERT(s->taken <= kWholeDevice, "more of a slice given than there is");
    return true;
  }
  GANTRY_ASSERT(s->taken >= part, "more of a slice given back than taken");
  s->taken -= part;
  if (s->taken > DevicePart{}) return true;
  g.shared.erase(s);
  return false;
}

void MigNode::mark(std::span<const GpuGrant> devices, PartitionId tenant, bool taken) {
  for (const GpuGrant& d : devices) {
    const auto at = find(d);
    if (!at) continue;
    Gpu& g = gpus_[at->first];
    if (d.part() && mark_part(g, at->second, d.of_slice, tenant, taken)) continue;
    const std::uint64_t layout =
        taken ? g.layout | mig_bit(at->second) : g.layout & ~mig_bit(at->second);
    const MigState state = g.shape->table.state_of(layout);
    // If the driver's table changed while a job ran, its slice is not seen here; the core refuses
    // what would overlap it.
    if (state == kNoMigState) continue;
    g.layout = layout;
    g.state = state;
  }
}

void MigNode::hold(std::size_t gpu, const Hold& hold, std::vector<MigUsed> used) {
  gpus_[gpu].holds.push_back(hold);
  gpus_[gpu].used = std::move(used);
}

void MigNode::drop_holds() {
  for (Gpu& g : gpus_) {
    g.holds.clear();
    g.used.clear();
  }
}

void MigNode::lasts(std::span<const GpuGrant> devices, Instant until) {
  for (const GpuGrant& d : devices)
    if (const auto at = find(d); at && !gpus_[at->first].holds.empty())
      gpus_[at->first].used.push_back({at->second, until, false});
}

}  // namespace gantry::sched
