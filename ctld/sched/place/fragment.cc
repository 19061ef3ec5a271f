#include "ctld/sched/place/fragment.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace gantry::sched {
namespace {

constexpr double kPart = 0.95;             // share of the requests for GPUs that is considered
constexpr double kMostWithoutGpus = 0.25;  // a higher share would make all scores alike

}  // namespace

Fragmentation::Fragmentation(const GpuMix& mix) {
  std::vector<std::pair<GpuNeed, std::uint64_t>> by_count;
  std::uint64_t with = 0, without = 0, covered = 0;
  for (const auto& [need, count] : mix) {
    if (need.any()) by_count.emplace_back(need, count);
    (need.any() ? with : without) += count;
  }
  if (with == 0) return;
  std::stable_sort(by_count.begin(), by_count.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  for (const auto& [need, count] : by_count) {
    if (expected_.size() == kMostNeeds ||
        static_cast<double>(covered) >= kPart * static_cast<double>(with))
      break;
    covered += count;
    expected_.push_back({need, static_cast<double>(count)});
  }
  without_gpus_ = std::min(kMostWithoutGpus,
                           static_cast<double>(without) / static_cast<double>(with + without));
  for (Expected& e : expected_) e.frequency *= (1 - without_gpus_) / static_cast<double>(covered);
}

double Fragmentation::amount(const GpuRoom& room) const {
  std::int64_t all = 0;
  for (std::uint32_t i = 0; i < room.gpus; ++i) all += room.free[i];
  double amount = without_gpus_ * static_cast<double>(all);
  for (const auto& [need, frequency] : expected_) {
    const std::uint16_t each = need.gpus > 0 ? kWholeGpu : static_cast<std::uint16_t>(need.part);
    std::int64_t usable = 0;
    std::uint32_t able = 0;
    for (std::uint32_t i = 0; i < room.gpus; ++i)
      if (room.free[i] >= each) {
        usable += room.free[i];
        ++able;
      }
    if (able < std::max(need.gpus, 1u) || room.cpus < need.cpus || room.memory < need.memory) {
      usable = 0;
    } else {
      const double asked = need.gpus > 0 ? need.gpus * double{kWholeGpu} : need.part;
      double lasts = static_cast<double>(usable);
      if (need.cpus > 0) lasts = std::min(lasts, asked * room.cpus / need.cpus);
      if (need.memory > 0)
        lasts = std::min(
            lasts, asked * (static_cast<double>(room.memory) / static_cast<double>(need.memory)));
      usable = static_cast<std::int64_t>(lasts);
    }
    amount += frequency * static_cast<double>(all - usable);
  }
  return amount;
}

int Fragmentation::score(double before, const GpuRoom& after) const {
  const double grows = (amount(after) - before) / kWholeGpu;
  return static_cast<int>(std::lround(kMostScore / (1.0 + std::exp(grows))));
}

}  // namespace gantry::sched
