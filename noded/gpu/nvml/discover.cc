#include "noded/gpu/nvml/discover.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "common/codec/codec.h"
#include "noded/machine/files.h"

namespace gantry::gpu {

using nvml::Return;

namespace {

constexpr std::uint32_t kMostGpus = 16'384;

// The NUMA node of a PCI device, from the kernel or else from the driver.
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

// Describes one GPU, without its links and MIG slices.
Answer<GpuDevice> describe(const Nvml& nvml, nvml::Device device, const Roots& roots) {
  GpuDevice gpu;
  ASSIGN(pci, nvml.pci(device));
  ASSIGN(uuid, nvml.uuid(device));
  ASSIGN(name, nvml.name(device));
  ASSIGN(minor, nvml.minor_number(device));
  const auto memory = nvml.memory(device);  // some GPUs use only the machine's memory
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
// GPUs on switches are connected by as many links as the one with fewer links to switches has.
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
      if (!active) break;  // there is no such link, or the GPU has no links at all
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
// (because they have different sizes of memory), the later ones get another model name,
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

constexpr const char* kFile = "gpus.msgpack";
constexpr std::uint32_t kUnset = 0xFFFFFFFF;

// Links are stored by index of the other GPU, so they move when indexes change.
void renumber_links(GpuDevice& gpu, const std::vector<std::uint32_t>& new_of, std::size_t count) {
  if (gpu.nvlinks.empty()) return;
  std::vector<std::uint32_t> links(count);
  for (std::size_t i = 0; i < gpu.nvlinks.size(); ++i) links[new_of[i]] = gpu.nvlinks[i];
  gpu.nvlinks = std::move(links);
}

// The one compute instance of a GPU instance; nullopt if there are several, or none.
const Nvml::MigDevice* whole_instance(const std::vector<Nvml::MigDevice>& devices,
                                      std::uint32_t gpu_instance) {
  const Nvml::MigDevice* found = nullptr;
  for (const Nvml::MigDevice& one : devices) {
    if (one.gpu_instance != gpu_instance) continue;
    if (found != nullptr) return nullptr;
    found = &one;
  }
  return found;
}

// Whether the GPU instance has a compute instance with all of its `slices` compute slices.
Answer<bool> has_whole_instance(const Nvml& nvml, nvml::GpuInstance instance,
                                std::uint32_t slices) {
  ASSIGN(profiles, nvml.compute_profiles(instance));
  for (const nvml::ComputeInstanceProfile& profile : *profiles) {
    if (profile.slices != slices) continue;
    ASSIGN(present, nvml.compute_instances(instance, profile.id));
    if (!present->empty()) return true;
  }
  return false;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : std::string(name) + " ") {
    const bool letter = (c >= 'a' && c <= 'z') || is_digit(c) || c == '+';
    const bool capital = c >= 'A' && c <= 'Z';
    if (letter || capital) {
      word += capital ? static_cast<char>(c - 'A' + 'a') : c;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  return words;
}

// Whether the word is a chip name: up to three letters and two or more digits, followed by at most
// one letter: h100, b200, gb200, t4, l40s, a10g, v100s. A size ("80gb"), a module ("sxm4") or a
// memory ("hbm3") is no chip.
bool is_chip(const std::string& word) {
  static constexpr std::array<std::string_view, 5> kOther{"sxm", "hbm", "pcie", "nvl", "gddr"};
  for (const std::string_view prefix : kOther)
    if (word.starts_with(prefix)) return false;
  std::size_t at = 0;
  while (at < word.size() && !is_digit(word[at])) ++at;
  const std::size_t letters = at;
  while (at < word.size() && is_digit(word[at])) ++at;
  return letters >= 1 && letters <= 3 && at > letters && word.size() - at <= 1;
}

// Whether the word is not used in the usual name of the model.
bool is_noise(const std::string& word) {
  static constexpr std::array<std::string_view, 8> kNoise{
      "nvidia", "tesla", "quadro", "geforce", "graphics", "gpu", "device", "generation"};
  const bool size = is_digit(word.front()) && word.ends_with("gb");
  return size || std::ranges::find(kNoise, word) != kNoise.end();
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
  std::ranges::sort(found, [](auto& a, auto& b) { return a.gpu.pci < b.gpu.pci; });
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
    const bool is_wanted =
        std::ranges::any_of(wanted, [&](const MigSlice& w) { return same(w, slice); });
    (is_wanted ? out.kept : out.foreign).push_back(slice);
  }
  for (const MigSlice& slice : wanted)
    if (std::ranges::none_of(present, [&](const MigSlice& p) { return same(slice, p); }))
      out.missing.push_back(slice);
  return out;
}

void keep_indexes(Discovery& found, const KnownGpus& known, Instant now) {
  auto& gpus = found.inventory.gpus;
  std::vector<std::uint32_t> new_of(gpus.size(), kUnset);
  for (std::size_t i = 0; i < gpus.size(); ++i)
    for (std::size_t k = 0; k < known.gpus.size(); ++k)
      if (known.gpus[k].uuid == gpus[i].uuid) new_of[i] = static_cast<std::uint32_t>(k);
  std::size_t count = known.gpus.size();
  for (std::uint32_t& index : new_of)
    if (index == kUnset) index = static_cast<std::uint32_t>(count++);
  std::vector<GpuDevice> all(known.gpus);
  all.resize(count);
  std::vector<nvml::Device> devices(count, nullptr);
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    renumber_links(gpus[i], new_of, count);
    devices[new_of[i]] = found.devices[i];
    all[new_of[i]] = std::move(gpus[i]);
  }
  for (std::size_t i = 0; i < count; ++i) {
    all[i].index = static_cast<std::uint32_t>(i);
    if (devices[i] != nullptr) continue;
    const auto before = std::ranges::find_if(
        all[i].faults, [](auto& fault) { return fault.cause.starts_with("gpu-lost"); });
    const Instant since = before != all[i].faults.end() ? before->since : now;
    all[i].faults = {{FaultDomain::gpu, "gpu-lost: fallen off the bus", 0, since}};
  }
  gpus = std::move(all);
  found.devices = std::move(devices);
  if (!gpus.empty()) found.inventory.why_none.clear();
}

Result<KnownGpus> load_known(const std::string& dir, const std::string& boot_id) {
  KnownGpus none;
  none.boot_id = boot_id;
  const auto bytes = runtime::read_file(dir + "/" + kFile);
  if (!bytes && bytes.error().code == ErrorCode::not_found) return none;
  if (!bytes) return tl::unexpected(bytes.error());
  auto known = codec::decode<KnownGpus>(*bytes);
  if (!known) return fail(known.error().code, dir + "/" + kFile + ": " + known.error().message);
  return known->boot_id == boot_id ? std::move(*known) : none;
}

Result<void> store_known(const std::string& dir, const KnownGpus& known) {
  TRY(runtime::make_dirs(dir, 0700));
  const Fd fd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return runtime::fail_errno(ErrorCode::io_error, dir);
  // The file has to survive the daemon, but not a reboot.
  return runtime::write_whole(fd.get(), kFile, codec::encode(known), runtime::Durability::none);
}

using nvml::Return;

Answer<MigGeometry> geometry_of(const Nvml& nvml, nvml::Device device, const std::string& model) {
  MigGeometry out;
  out.model = model;
  ASSIGN(profiles, nvml.profiles(device));
  for (const Profile& one : *profiles) {
    const auto places = nvml.placements(device, one.info.id);
    // The profile is not available in this mode.
    if (!places && places.error().code == Return::not_supported) continue;
    if (!places) return tl::unexpected(places.error());
    if (places->empty()) continue;
    MigProfile profile;
    profile.name = one.name;
    profile.id = one.info.id;
    profile.compute_slices = one.info.slices;
    profile.memory_slices = places->front().size;
    profile.memory = bytes_of(Mebibytes{static_cast<std::int64_t>(one.info.memory_mib)}).value();
    profile.max_instances = one.info.instances;
    for (const nvml::Placement& place : *places) {
      profile.starts.push_back(place.start);
      out.memory_slices = std::max(out.memory_slices, place.start + place.size);
    }
    out.compute_slices = std::max(out.compute_slices, profile.compute_slices);
    out.profiles.push_back(std::move(profile));
  }
  return out;
}

Answer<std::vector<MigSlice>> slices_of(const Nvml& nvml, nvml::Device device,
                                        const std::vector<MigProfile>& profiles,
                                        std::vector<std::string>& warnings) {
  std::vector<MigSlice> out;
  ASSIGN(devices, nvml.mig_devices(device));
  for (const MigProfile& profile : profiles) {
    ASSIGN(instances, nvml.gpu_instances(device, profile.id));
    for (const nvml::GpuInstance instance : *instances) {
      const auto info = nvml.info(instance);
      if (!info && info.error().code == Return::not_found) continue;  // the instance has just gone
      if (!info) return tl::unexpected(info.error());
      const Nvml::MigDevice* whole = whole_instance(*devices, info->id);
      ASSIGN(all, has_whole_instance(nvml, instance, profile.compute_slices));
      if (whole == nullptr || !*all) {
        const auto any =
            std::ranges::any_of(*devices, [&](auto& one) { return one.gpu_instance == info->id; });
        warnings.push_back(
            fmt::format("GPU instance {} ({} at {}) has {}, so it is not used", info->id,
                        profile.name, info->placement.start,
                        any ? "compute instances with parts of it" : "no compute instance"));
        continue;
      }
      out.push_back(
          {profile.id, info->placement.start, info->id, whole->compute_instance, whole->uuid});
    }
  }
  std::ranges::sort(out, [](auto& a, auto& b) { return a.start < b.start; });
  return out;
}

std::string model_of(std::string_view name) {
  const auto words = words_of(name);
  // "RTX 6000 Ada" and "RTX A6000" are no data-centre chips: their family is part of the name.
  const bool has_family = std::ranges::any_of(words, [](const std::string& word) {
    return word == "rtx" || word == "gtx" || word == "titan";
  });
  if (!has_family)
    for (const std::string& word : words)
      if (is_chip(word)) return word;
  std::string model;
  for (const std::string& word : words)
    if (!is_noise(word)) model += (model.empty() ? "" : "-") + word;
  return model.empty() ? "gpu" : model;
}

}  // namespace gantry::gpu
