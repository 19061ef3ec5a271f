#include "ctld/sched/gpu/gpu_choice.h"

#include <algorithm>
#include <array>
#include <bit>
#include <set>
#include <tuple>

#include "common/assert.h"

namespace gantry::sched {
namespace {

using Group = std::vector<const GpuView*>;

std::uint32_t links(const GpuView& a, const GpuView& b) {
  return b.index < a.nvlinks.size() ? a.nvlinks[b.index] : 0;
}

std::uint64_t links_to(const Group& group, const GpuView& gpu) {
  std::uint64_t sum = 0;
  for (const GpuView* g : group) sum += g == &gpu ? 0 : links(*g, gpu);
  return sum;
}

Group grow(const Group& free, const GpuView* first, std::uint32_t count) {
  Group group{first};
  while (group.size() < count) {
    const GpuView* best = nullptr;
    const auto worth = [&](const GpuView* g) {
      return std::tuple{links_to(group, *g), g->numa == first->numa, -std::int32_t{g->index}};
    };
    for (const GpuView* g : free)
      if (std::find(group.begin(), group.end(), g) == group.end() &&
          (best == nullptr || worth(g) > worth(best)))
        best = g;
    group.push_back(best);
  }
  return group;
}

// The cost of a group of GPUs; less is better.
auto cost(const Group& free, const Group& group) {
  std::uint64_t inside = 0, cut = 0;
  std::set<std::int32_t> numa;
  for (const GpuView* g : group) {
    inside += links_to(group, *g);
    numa.insert(g->numa);
  }
  for (const GpuView* g : free)
    if (std::find(group.begin(), group.end(), g) == group.end()) cut += links_to(group, *g);
  return std::tuple{-static_cast<std::int64_t>(inside), numa.size(), cut};
}

// Examines every group with the same cost function, lowest numbers first; of equal groups it takes
// the first.
Group best_of_all(const Group& free, std::uint32_t count) {
  const std::size_t n = free.size();
  std::array<std::array<std::uint64_t, kExactGpus>, kExactGpus> between{};
  std::array<std::uint32_t, kExactGpus> numa{};  // a bit for each NUMA node
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < n; ++k) between[i][k] = i == k ? 0 : links(*free[i], *free[k]);
    const auto first = std::find_if(free.begin(), free.end(),
                                    [&](const GpuView* g) { return g->numa == free[i]->numa; });
    numa[i] = 1u << (first - free.begin());
  }
  const auto has = [n](std::uint32_t group, std::size_t i) {
    return (group >> (n - 1 - i) & 1) != 0;
  };
  std::uint32_t best = 0;
  std::tuple<std::int64_t, int, std::uint64_t> least;
  for (std::uint32_t group = (1u << n) - 1; group > 0; --group) {
    if (std::popcount(group) != static_cast<int>(count)) continue;
    std::uint64_t inside = 0, cut = 0;
    std::uint32_t nodes = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (!has(group, i)) continue;
      nodes |= numa[i];
      for (std::size_t k = 0; k < n; ++k) (has(group, k) ? inside : cut) += between[i][k];
    }
    const std::tuple c{-static_cast<std::int64_t>(inside), std::popcount(nodes), cut};
    if (best != 0 && c >= least) continue;
    best = group;
    least = c;
  }
  Group out;
  for (std::size_t i = 0; i < n; ++i)
    if (has(best, i)) out.push_back(free[i]);
  return out;
}

}  // namespace

std::vector<std::uint16_t> choose_gpus(std::span<const GpuView> devices,
                                       const std::vector<bool>& taken, std::uint32_t count) {
  std::vector<std::uint16_t> chosen;
  if (count == 0) return chosen;
  Group free;
  for (const GpuView& gpu : devices)
    if (!gpu.mig && (gpu.index >= taken.size() || !taken[gpu.index])) free.push_back(&gpu);
  GANTRY_ASSERT(free.size() >= count, "fewer GPUs free than counted");
  const bool alike = std::all_of(free.begin(), free.end(), [&](const GpuView* g) {
    return g->nvlinks.empty() && g->numa == free.front()->numa;
  });
  Group best(free.begin(), free.begin() + count);
  if (!alike && free.size() > count && free.size() <= kExactGpus) {
    best = best_of_all(free, count);
  } else if (!alike && free.size() > count) {
    auto least = cost(free, best);
    for (const GpuView* first : free) {
      Group group = grow(free, first, count);
      if (const auto c = cost(free, group); c < least) {
        least = c;
        best = std::move(group);
      }
    }
  }
  for (const GpuView* g : best) chosen.push_back(g->index);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace gantry::sched
