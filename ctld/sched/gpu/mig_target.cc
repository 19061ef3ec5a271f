#include "ctld/sched/gpu/mig_target.h"

#include <algorithm>

namespace gantry::sched {
namespace {

// The profile that serves the want on GPUs of the table, if there is one.
std::optional<std::uint32_t> profile_for(const MigWant& want, const MigTable& table) {
  if (!want.profile.empty()) return table.profile_named(want.profile);
  return want.full_slice ? table.full_profile() : std::nullopt;
}

std::uint64_t slices_of(const MigGpuView& gpu, const MigTable& table, std::uint32_t profile) {
  if (!gpu.fixed) return table.fits(0, profile);
  return static_cast<std::uint64_t>(std::count_if(
      gpu.slices.begin(), gpu.slices.end(),
      [&](const MigSliceView& s) { return table.placements()[s.at].profile == profile; }));
}

// Counts one node's GPUs, [first, end).
void count_node(const MigView& view, std::uint32_t first, std::uint32_t end, bool whole,
                MigTarget& target) {
  std::uint64_t whole_now = 0, whole_ever = 0;
  std::vector<std::uint64_t> now(target.cuts.size(), 0), ever(target.cuts.size(), 0);
  for (std::uint32_t g = first; g < end; ++g) {
    const MigGpuView& v = view.gpus[g];
    if (!target.has(g) || !v.healthy) continue;
    whole_now += v.mig ? 0 : 1;
    whole_ever += v.mig && v.fixed ? 0 : 1;
    for (std::size_t c = 0; c < target.cuts.size(); ++c) {
      if (v.table != target.cuts[c].table) continue;
      const std::uint64_t n = slices_of(v, *view.tables[*v.table], target.cuts[c].profile);
      now[c] += v.mig ? n : 0;
      ever[c] += n;
    }
  }
  for (std::size_t c = 0; c < target.cuts.size(); ++c) {
    // Several whole GPUs work together over links; several full slices have no links.
    const std::uint64_t most = whole ? 1 : UINT64_MAX;
    target.most_now = std::max(target.most_now, std::min(now[c], most));
    target.most_ever = std::max(target.most_ever, std::min(ever[c], most));
  }
  if (!whole) return;
  target.most_now = std::max(target.most_now, whole_now);
  target.most_ever = std::max(target.most_ever, whole_ever);
}

}  // namespace

std::vector<MigTarget> mig_targets(const MigView& view) {
  std::vector<MigTarget> targets;
  for (const MigWant& want : view.wants) {
    MigTarget& target = targets.emplace_back();
    std::vector<std::uint32_t> tables = want.tables;
    if (tables.empty())
      for (std::uint32_t t = 0; t < view.tables.size(); ++t) tables.push_back(t);
    for (const std::uint32_t t : tables)
      if (const auto p = profile_for(want, *view.tables[t])) target.cuts.push_back({t, *p});
    if (!want.nodes.empty()) {
      target.among.emplace().resize(view.gpus.size());
      for (std::uint32_t g = 0; g < view.gpus.size(); ++g)
        if (std::binary_search(want.nodes.begin(), want.nodes.end(), view.gpus[g].node))
          target.among->set(g);
    }
    for (std::uint32_t first = 0, end = 0; first < view.gpus.size(); first = end) {
      while (end < view.gpus.size() && view.gpus[end].node == view.gpus[first].node) ++end;
      count_node(view, first, end, want.profile.empty(), target);
    }
  }
  return targets;
}

std::vector<std::vector<std::uint32_t>> mig_wanted(const MigView& view) {
  std::vector<std::uint32_t> slices(view.wants.size(), 0);
  for (const MigJob& job : view.jobs) slices[job.want] += job.count;
  std::vector<std::vector<std::uint32_t>> wanted = view.asked;
  wanted.resize(view.tables.size());
  for (std::size_t t = 0; t < view.tables.size(); ++t) {
    wanted[t].resize(view.tables[t]->profiles().size(), 0);
    for (std::size_t w = 0; w < view.wants.size(); ++w)
      if (const auto p = profile_for(view.wants[w], *view.tables[t])) wanted[t][*p] += slices[w];
  }
  return wanted;
}

}  // namespace gantry::sched
