#include "noded/gpu/nvml/discover.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "noded/machine/files.h"

namespace gantry::gpu {

using nvml::Return;

namespace {

constexpr std::uint32_t kMostGpus = 16'384;

// The NUMA node of a PCI device: the kernel's answer, or otherwise the driver's.
std::int32_t numa_of(const Nvml& nvml, nvml::Device device, const Roots& roots,
                     const std::string& pci) {
  const auto text = runtime::read_file(roots.sys + "/bus/pci/devices/" + pci + "/numa_node", 4096);
  if (text) {
    std::int32_t node = -1;
    const std::string trimmed = runtime::trim(*text);
    std::from_chars(trimmed.data(), trimmed.data() + trimmed.size(), node);
    if (node >= 0) return node;
  }
  return nvml.numa(device).value_or(-1);
}

// Describes one GPU, without its links and MIG.
Answer<GpuDevice> describe(const Nvml& nvml, nvml::Device device, const Roots& roots) {
  GpuDevice gpu;
  ASSIGN(pci, nvml.pci(device));
  ASSIGN(uuid, nvml.uuid(device));
  ASSIGN(name, nvml.name(device));
  ASSIGN(minor, nvml.minor(device));
  const auto memory = nvml.memory(device);  // some GPUs have only the machine's memory
  if (!memory && memory.error().code != Return::not_supported)
    return tl::unexpected(memory.error());
  gpu.pci = std::move(*pci);
  gpu.uuid = std::move(*uuid);
  gpu.name = std::move(*name);
  gpu.model = model_of(gpu.name);
  gpu.minor = *minor;
  gpu.memory = static_cast<std::int64_t>(memory.value_or(MemoryUse{}).total);
  gpu.numa = numa_of(nvml, device, roots, gpu.pci);
  return gpu;
}

// Counts the links from each GPU straight to others and to switches, then fills in all pairs: two
// GPUs that are on switches reach each other over as many links as the one with fewer has to
// switches.
void find_links(const Nvml& nvml, Discovery& out) {
  auto& gpus = out.inventory.gpus;
  std::map<std::string, std::uint32_t, std::less<>> by_pci;
  for (const GpuDevice& gpu : gpus) by_pci[gpu.pci] = gpu.index;
  std::vector<std::uint32_t> to_switches(gpus.size());
  std::vector<std::map<std::uint32_t, std::uint32_t>> direct(gpus.size());
  bool any = false;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    for (std::uint32_t link = 0; link < nvml::kMostNvLinks; ++link) {
      const auto active = nvml.link_active(out.devices[i], link);
      if (!active) break;  // no such link, or the GPU has no links at all
      if (!*active) continue;
      const auto peer = nvml.link_pci(out.devices[i], link);
      const auto found = peer ? by_pci.find(*peer) : by_pci.end();
      if (found != by_pci.end())
        ++direct[i][found->second];
      else if (nvml.link_end(out.devices[i], link).value_or(nvml::LinkEnd::unknown) ==
               nvml::LinkEnd::nvswitch)
        ++to_switches[i];
      else
        continue;
      any = true;
    }
  }
  if (!any) return;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    gpus[i].nvlinks.assign(gpus.size(), 0);
    for (std::size_t k = 0; k < gpus.size(); ++k)
      if (k != i) gpus[i].nvlinks[k] = std::min(to_switches[i], to_switches[k]);
    for (const auto& [k, links] : direct[i]) gpus[i].nvlinks[k] += links;
  }
}

bool same_shape(const MigGeometry& a, const MigGeometry& b) {
  return a.compute_slices == b.compute_slices && a.memory_slices == b.memory_slices &&
         a.profiles == b.profiles;
}

// All GPUs of a model share one geometry. If GPUs have the same name and different profiles
// (because they have different sizes of memory), the later ones get a model name of their own,
// "a100-80gb".
void find_geometry_of(const Nvml& nvml, GpuDevice& gpu, nvml::Device device, Discovery& out) {
  auto geometry = geometry_of(nvml, device, gpu.model);
  if (!geometry) {
    out.warnings.push_back(
        fmt::format("GPU {} ({}): what it can be partitioned into is not known: {}", gpu.index,
                    gpu.pci, to_string(geometry.error())));
    return;
  }
  if (geometry->profiles.empty()) return;
  const MigGeometry* known = find_geometry(out.inventory, gpu.model);
  if (known != nullptr && !same_shape(*known, *geometry)) {
    constexpr std::int64_t kGiB = std::int64_t{1} << 30;
    gpu.model += fmt::format("-{}gb", (gpu.memory + kGiB / 2) / kGiB);
    geometry->model = gpu.model;
    known = find_geometry(out.inventory, gpu.model);
    out.warnings.push_back(
        fmt::format("GPU {} ({}): other profiles than the {} before it, so its "
                    "model is called {}",
                    gpu.index, gpu.pci, geometry->model, gpu.model));
  }
  if (known == nullptr) out.inventory.geometries.push_back(std::move(*geometry));
}

void find_mig(const Nvml& nvml, GpuDevice& gpu, nvml::Device device, Discovery& out) {
  const auto mode = nvml.mig_mode(device);
  gpu.mig = mode && mode->now;
  if (mode && mode->now != mode->after_reset)
    out.warnings.push_back(fmt::format("GPU {} ({}): MIG mode changes to {} when it is reset",
                                       gpu.index, gpu.pci, mode->after_reset ? "on" : "off"));
  find_geometry_of(nvml, gpu, device, out);
  if (!gpu.mig) return;
  const MigGeometry* geometry = find_geometry(out.inventory, gpu.model);
  if (geometry == nullptr) return;
  std::vector<std::string> warnings;
  auto slices = slices_of(nvml, device, geometry->profiles, warnings);
  for (const std::string& text : warnings)
    out.warnings.push_back(fmt::format("GPU {} ({}): {}", gpu.index, gpu.pci, text));
  if (slices)
    gpu.slices = std::move(*slices);
  else
    out.warnings.push_back(
        fmt::format("GPU {} ({}): {}", gpu.index, gpu.pci, to_string(slices.error())));
}

}  // namespace

Discovery discover(const Nvml& nvml, const Roots& roots, Instant now) {
  Discovery out;
  out.inventory.driver = nvml.driver_version().value_or("unknown");
  out.inventory.cuda = nvml.cuda_version().value_or("");
  const auto count = nvml.count();
  if (!count) {
    out.inventory.why_none = to_string(count.error());
    return out;
  }
  struct Found {
    GpuDevice gpu;
    nvml::Device device = nullptr;
  };
  std::vector<Found> found;
  for (std::uint32_t i = 0; i < std::min(*count, kMostGpus); ++i) {
    const auto device = nvml.device(i);
    auto gpu =
        device ? describe(nvml, *device, roots) : Answer<GpuDevice>(tl::unexpected(device.error()));
    if (gpu)
      found.push_back({std::move(*gpu), *device});
    else
      out.warnings.push_back(
          fmt::format("the driver's GPU {} does not answer: {}", i, to_string(gpu.error())));
  }
  std::sort(found.begin(), found.end(), [](auto& a, auto& b) { return a.gpu.pci < b.gpu.pci; });
  for (Found& one : found) {
    one.gpu.index = static_cast<std::uint32_t>(out.inventory.gpus.size());
    const auto alive = nvml.memory(one.device);
    if (!alive && alive.error().code == Return::gpu_is_lost)
      one.gpu.faults.push_back(
          {FaultDomain::gpu, "gpu-lost: the GPU has fallen off the bus", 0, now});
    find_mig(nvml, one.gpu, one.device, out);
    out.inventory.gpus.push_back(std::move(one.gpu));
    out.devices.push_back(one.device);
  }
  find_links(nvml, out);
  if (out.inventory.gpus.empty())
    out.inventory.why_none = *count == 0
                                 ? "the NVIDIA driver finds no GPU"
                                 : fmt::format("none of the driver's {} GPUs answers", *count);
  return out;
}

GpuInventory no_gpus(const Error& why) {
  GpuInventory out;
  out.why_none = why.message;
  return out;
}

const MigGeometry* find_geometry(const GpuInventory& inventory, std::string_view model) {
  for (const MigGeometry& geometry : inventory.geometries)
    if (geometry.model == model) return &geometry;
  return nullptr;
}

const MigProfile* find_profile(const MigGeometry& geometry, std::uint32_t id) {
  for (const MigProfile& profile : geometry.profiles)
    if (profile.id == id) return &profile;
  return nullptr;
}

Difference reconcile(const std::vector<MigSlice>& wanted, const std::vector<MigSlice>& present) {
  Difference out;
  const auto same = [](const MigSlice& a, const MigSlice& b) {
    return a.profile == b.profile && a.start == b.start && a.uuid == b.uuid;
  };
  for (const MigSlice& slice : present) {
    const bool is_wanted = std::any_of(wanted.begin(), wanted.end(),
                                       [&](const MigSlice& w) { return same(w, slice); });
    (is_wanted ? out.kept : out.foreign).push_back(slice);
  }
  for (const MigSlice& slice : wanted)
    if (std::none_of(present.begin(), present.end(),
                     [&](const MigSlice& p) { return same(slice, p); }))
      out.missing.push_back(slice);
  return out;
}

}  // namespace gantry::gpu
