// See gpus.h.
#include "tests/sim/gpus.h"

#include <algorithm>

#include <fmt/core.h>

#include "tests/sched/mig/mig_world.h"

namespace gantry::sim {
namespace {

const MigProfile* profile_of(const GpuInventory& gpus, std::uint32_t id) {
  for (const MigGeometry& g : gpus.geometries)
    for (const MigProfile& p : g.profiles)
      if (p.id == id) return &p;
  return nullptr;
}

}  // namespace

void draw_for_gpus(Random& random, Settings& s) {
  s.gpus = true;
  // A heterogeneous job whose components ask for GPUs is tried in several orders, and one such
  // search may count as some dozens of attempts. A plan starts nothing else if its budget ends
  // within the search of its first job, so the budget must allow it (the shipped one is 100,000).
  if (s.plan_attempts < 100) s.plan_attempts += 100;
  if (random.chance(700)) s.faults.gpu = random.between(seconds(20), seconds(400));
  for (NodeConfig& node : s.config.nodes) {
    node.cpus += static_cast<std::uint32_t>(random.between(0, 6));
    node.gpus = random.chance(800) ? static_cast<std::uint32_t>(random.between(1, 4)) : 0;
    node.gpu_model = node.gpus > 0 ? "h100" : "";
    if (node.gpus == 0 || !random.chance(600)) continue;
    node.gpu_sharing = GpuSharing::time_slicing;
    node.gpu_shards = 4;
  }
}

GpuInventory draw_inventory(Random& random, const NodeConfig& node) {
  GpuInventory out;
  if (node.gpus == 0) return out;
  out.driver = "550.54.15";
  out.cuda = "12.4";
  out.geometries = {sched::h100_geometry()};
  for (std::uint32_t i = 0; i < node.gpus; ++i) {
    GpuDevice& gpu = out.gpus.emplace_back();
    gpu.index = i;
    gpu.uuid = fmt::format("GPU-{}-{}", node.name, i);
    gpu.model = "h100";
    gpu.memory = std::int64_t{80} << 30;
    gpu.mig = random.chance(400);
  }
  return out;
}

void draw_gpus_of(Random& random, JobShape& shape) {
  const auto what = random.below(100);
  if (what < 35) return;
  if (what < 55) {
    shape.gpus_per_node = static_cast<std::uint32_t>(random.between(1, 2));
    return;
  }
  if (what < 80) {
    const char* names[] = {"1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"};
    shape.gpu_slice = names[random.below(6)];
    shape.gpus_per_node = random.chance(200) ? 2 : 1;
    if (!random.chance(300)) return;
    shape.gpus_per_node = 0;
    shape.gpu_share = static_cast<std::uint32_t>(random.between(1, 19)) * 50;
    return;
  }
  if (what < 92)
    shape.gpu_share = static_cast<std::uint32_t>(random.between(1, 19)) * 50;
  else
    shape.gpu_shards = static_cast<std::uint32_t>(random.between(1, 4));
}

bool break_gpu(Random& random, GpuInventory& gpus, Instant now) {
  if (gpus.gpus.empty()) return false;
  GpuDevice& gpu = gpus.gpus[random.below(gpus.gpus.size())];
  const bool whole_node = random.chance(100);
  if (!gpu.faults.empty()) return false;
  gpu.faults.push_back({whole_node ? FaultDomain::node : FaultDomain::gpu,
                        whole_node ? "gpu-xid-151: keys changed" : "gpu-xid-79: fallen off the bus",
                        0, now});
  return true;
}

bool repair_gpus(GpuInventory& gpus) {
  bool any = false;
  for (GpuDevice& gpu : gpus.gpus) {
    any = any || !gpu.faults.empty();
    gpu.faults.clear();
  }
  return any;
}

std::string conflict(const GpuInventory& gpus, const GpuGrant& mine, const GpuGrant& theirs,
                     bool same_tenant) {
  if (mine.gpu != theirs.gpu) return {};
  if (mine.profile && theirs.profile) {
    const MigProfile* a = profile_of(gpus, *mine.profile);
    const MigProfile* b = profile_of(gpus, *theirs.profile);
    const bool apart = a != nullptr && b != nullptr &&
                       (mine.start + a->memory_slices <= theirs.start ||
                        theirs.start + b->memory_slices <= mine.start);
    if (mine.part() && theirs.part() && mine.profile == theirs.profile &&
        mine.start == theirs.start)
      return same_tenant ? "" : fmt::format("a slice of GPU {} is shared by two tenants", mine.gpu);
    return apart ? "" : fmt::format("slices of GPU {} overlap", mine.gpu);
  }
  if (mine.whole() || theirs.whole() || mine.profile || theirs.profile)
    return fmt::format("GPU {} is given twice", mine.gpu);
  return same_tenant ? "" : fmt::format("GPU {} is shared by two tenants", mine.gpu);
}

std::string impossible(const GpuInventory& gpus, const GpuGrant& grant) {
  const auto gpu = std::find_if(gpus.gpus.begin(), gpus.gpus.end(),
                                [&](const GpuDevice& d) { return d.index == grant.gpu; });
  if (gpu == gpus.gpus.end()) return fmt::format("there is no GPU {}", grant.gpu);
  if (gpu->mig != grant.profile.has_value())
    return fmt::format("GPU {} is {} in MIG mode", grant.gpu, gpu->mig ? "" : "not");
  if (!grant.profile) return {};
  const MigProfile* p = profile_of(gpus, *grant.profile);
  if (p == nullptr || std::find(p->starts.begin(), p->starts.end(), grant.start) == p->starts.end())
    return fmt::format("no such slice of GPU {}", grant.gpu);
  return {};
}

}  // namespace gantry::sim
