// Works out what a start holds, by item and node pool: the lines of its bill. See ledger.h.
#include <algorithm>

#include "ctld/core/money/ledger.h"
#include "ctld/core/resources/gpus.h"
#include "ctld/core/state/state.h"
#include "ctld/sched/gpu/mig.h"

namespace gantry::core {
namespace {

// Collects the lines of one attempt, in the order in which they are found.
class HoldingBuilder {
 public:
  void begin_node() { out_.held.emplace_back(); }
  void add(const std::string& pool, std::string item, CoreThousandths amount) {
    add(pool, std::move(item), kThousandthsUnit, amount.value());
  }
  void add(const std::string& pool, std::string item, Mebibytes amount) {
    add(pool, std::move(item), kMebibyteUnit, amount.value());
  }
  void add(const std::string& pool, std::string item, MegabyteRate amount) {
    add(pool, std::move(item), kThousandthsUnit, amount.value());  // thousandths of a GB/s
  }
  void add(const std::string& pool, std::string item, MegabitRate amount) {
    add(pool, std::move(item), kThousandthsUnit, amount.value());  // thousandths of a Gbit/s
  }
  // `unit`: the amount that the price of the item is for.
  void add(const std::string& pool, std::string item, GpuThousandths unit, GpuThousandths amount) {
    add(pool, std::move(item), unit.value(), amount.value());
  }
  Holding take() { return std::move(out_); }

 private:
  void add(const std::string& pool, std::string item, std::int64_t unit, std::int64_t amount) {
    if (amount <= 0) return;
    const BillItem what{pool, std::move(item), static_cast<std::uint32_t>(unit)};
    const auto it = std::find(out_.items.begin(), out_.items.end(), what);
    const auto line = static_cast<std::uint32_t>(it - out_.items.begin());
    if (it == out_.items.end()) out_.items.push_back(what);
    auto& node = out_.held.back();
    const auto part =
        std::find_if(node.begin(), node.end(), [&](const HeldPart& p) { return p.line == line; });
    if (part != node.end())
      part->amount += amount;
    else
      node.push_back({line, amount});
  }

  Holding out_;
};

std::string gpu_item(const std::string& model) {
  return "gpu:" + (model.empty() ? std::string("unknown") : model);
}

void add_gpus(HoldingBuilder& out, const Node& node, const std::string& pool,
              const sched::NodeGrant& grant, bool exclusive) {
  if (!exclusive && grant.gpus == 0 && grant.devices.empty()) return;
  const std::vector<sched::GpuView> views = gpus_for_jobs(node);
  const auto model_of = [&](std::uint16_t index) {
    for (const GpuDevice& gpu : node.facts.gpus.gpus)  // also of a GPU that is out of service
      if (gpu.index == index) return gpu.model;
    return node.declared == nullptr ? std::string() : node.declared->gpu_model;
  };
  if (exclusive) {
    for (const sched::GpuView& view : views) out.add(pool, gpu_item(view.model), kOneGpu, kOneGpu);
    return;
  }
  std::uint32_t whole = grant.gpus;
  for (const GpuGrant& gpu : grant.devices) {
    const std::string model = model_of(gpu.gpu);
    if (gpu.whole()) {
      out.add(pool, gpu_item(model), kOneGpu, kOneGpu);
      whole -= whole > 0 ? 1 : 0;
      continue;
    }
    std::string item = gpu_item(model) + ":shared";
    GpuThousandths unit = gpu.thousandths;  // the amount that one price is for
    if (gpu.profile)
      for (const MigGeometry& geometry : node.facts.gpus.geometries)
        for (const MigProfile& profile : geometry.profiles)
          if (geometry.model == model && profile.id == *gpu.profile) {
            item = gpu_item(model) + ":" + profile.name;
            if (gpu.part())
              unit = sched::MigShare{profile.compute_slices, geometry.compute_slices,
                                     profile.memory_slices, geometry.memory_slices}
                         .thousandths();
          }
    out.add(pool, std::move(item), unit, gpu.thousandths);
  }
  // Without a list of devices, all GPUs of a node count as the same model.
  const std::string alike = views.empty() ? model_of(0) : views.front().model;
  out.add(pool, gpu_item(alike), kOneGpu, thousandths_of(Gpus{whole}));
}

}  // namespace

Holding holding_of(const State& state, const std::vector<sched::NodeGrant>& grants,
                   bool exclusive) {
  const auto& compiled = state.tenancy.compiled.nodes;
  HoldingBuilder out;
  for (const sched::NodeGrant& grant : grants) {
    const Node& node = state.node(grant.node);
    const std::size_t n = grant.node.value();
    const std::string pool = n < compiled.size() ? compiled[n].pool : std::string();
    const bool all = exclusive && node.declared != nullptr;
    const Cores cores{all ? std::ssize(node.cpus) : std::ssize(grant.cpus)};
    const ByteCount memory{all ? node.declared->memory : grant.memory};
    const ByteCount scratch{all ? node.declared->scratch : grant.scratch};
    out.begin_node();
    out.add(pool, "cpu", thousandths_of(cores));
    out.add(pool, "memory", mebibytes_for(memory));
    out.add(pool, "scratch", mebibytes_for(scratch));
    out.add(pool, "io", megabytes_for(ByteRate{grant.io}));
    out.add(pool, "net", megabits_for(BitRate{grant.net}));
    add_gpus(out, node, pool, grant, all);
  }
  return out.take();
}

}  // namespace gantry::core
