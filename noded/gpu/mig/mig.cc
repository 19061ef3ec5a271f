#include "noded/gpu/mig/mig.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "common/codec/codec.h"

namespace gantry::gpu {

using nvml::Return;

namespace {

std::string name_of(const MigTarget& target) {
  return fmt::format("GPU {} ({})", target.gpu->index, target.gpu->pci);
}

bool overlap(std::uint32_t a, std::uint32_t a_size, std::uint32_t b, std::uint32_t b_size) {
  return a < b + b_size && b < a + a_size;
}

bool is_in(std::span<const std::string> list, const std::string& uuid) {
  return std::ranges::find(list, uuid) != list.end();
}

// The MIG devices within one GPU instance.
Answer<std::vector<Nvml::MigDevice>> devices_in(const Nvml& nvml, nvml::Device gpu,
                                                std::uint32_t gpu_instance) {
  return nvml.mig_devices(gpu).map([&](std::vector<Nvml::MigDevice> all) {
    std::erase_if(all, [&](auto& one) { return one.gpu_instance != gpu_instance; });
    return all;
  });
}

// Why the compute instances of a GPU instance may not be removed; "" when they may.
Answer<std::string> why_busy(const Nvml& nvml, const std::vector<Nvml::MigDevice>& devices,
                             std::span<const std::string> in_use) {
  for (const Nvml::MigDevice& one : devices) {
    if (is_in(in_use, one.uuid)) return fmt::format("{} is a job's", one.uuid);
    ASSIGN(processes, nvml.processes(one.device));
    if (!processes->empty())
      return fmt::format("process {} runs on {}", processes->front().pid, one.uuid);
  }
  return std::string();
}

constexpr std::string_view kPrefix = "mig-";
constexpr std::size_t kMostBytes = 4096;

// Checks the UUID, because it comes from a driver and becomes a part of a path.
Result<std::string> file_of(const std::string& gpu) {
  const bool plain =
      !gpu.empty() && gpu.size() < 100 && std::ranges::all_of(gpu, [](unsigned char c) {
        return c == '-' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
               (c >= 'A' && c <= 'Z');
      });
  if (!plain) return fail(ErrorCode::malformed, fmt::format("\"{}\" is no UUID of a GPU", gpu));
  return std::string(kPrefix) + gpu;
}

}  // namespace

std::vector<MigTarget> mig_targets(const Discovery& found) {
  std::vector<MigTarget> out;
  for (const GpuDevice& gpu : found.inventory.gpus)
    if (const MigGeometry* geometry = find_geometry(found.inventory, gpu.model);
        gpu.mig && geometry != nullptr && found.devices[gpu.index] != nullptr)
      out.push_back({found.devices[gpu.index], &gpu, geometry});
  return out;
}

Answer<std::vector<MigPartitioner::Instance>> MigPartitioner::instances(
    const MigTarget& target) const {
  std::vector<Instance> out;
  for (const MigProfile& profile : target.geometry->profiles) {
    ASSIGN(handles, nvml_.gpu_instances(target.device, profile.id));
    for (const nvml::GpuInstance handle : *handles) {
      ASSIGN(info, nvml_.info(handle));
      out.push_back({handle, *info, &profile});
    }
  }
  return out;
}

Answer<std::vector<nvml::ComputeInstance>> MigPartitioner::computes(
    nvml::GpuInstance instance) const {
  std::vector<nvml::ComputeInstance> out;
  ASSIGN(profiles, nvml_.compute_profiles(instance));
  for (const nvml::ComputeInstanceProfile& profile : *profiles) {
    ASSIGN(found, nvml_.compute_instances(instance, profile.id));
    out.insert(out.end(), found->begin(), found->end());
  }
  return out;
}

// Reads the instances itself: for a place that is taken the driver reports only
// insufficient_resources.
Result<const MigProfile*> MigPartitioner::check_place(const MigTarget& target,
                                                      std::uint32_t profile_id,
                                                      std::uint32_t start) const {
  const MigProfile* profile = find_profile(*target.geometry, profile_id);
  if (profile == nullptr)
    return fail(ErrorCode::invalid_argument,
                fmt::format("{}: an {} has no MIG profile {}", name_of(target), target.gpu->model,
                            profile_id));
  if (std::ranges::find(profile->starts, start) == profile->starts.end())
    return fail(ErrorCode::invalid_argument,
                fmt::format("{}: {} cannot start at {}", name_of(target), profile->name, start));
  const auto present = instances(target);
  if (!present) return fail_nvml(name_of(target), present.error());
  std::uint32_t compute = profile->compute_slices;
  for (const Instance& one : *present) {
    compute += one.profile->compute_slices;
    if (overlap(start, profile->memory_slices, one.info.placement.start, one.info.placement.size))
      return fail(ErrorCode::wrong_state,
                  fmt::format("{}: {} at {} is in the way of {} at {}", name_of(target),
                              one.profile->name, one.info.placement.start, profile->name, start));
  }
  if (compute > target.geometry->compute_slices)
    return fail(
        ErrorCode::wrong_state,
        fmt::format("{}: with {} it would have {} compute slices, more than {}", name_of(target),
                    profile->name, compute, target.geometry->compute_slices));
  return profile;
}

Result<MigSlice> MigPartitioner::create(const MigTarget& target, std::uint32_t profile_id,
                                        std::uint32_t start) {
  ASSIGN(profile, check_place(target, profile_id, start));
  MigIntent intent{MigStep::create, target.gpu->uuid, {}};
  intent.slice.profile = profile_id;
  intent.slice.start = start;
  TRY(journal_.begin(intent));
  auto slice = make(target, **profile, start);
  TRY(journal_.done(target.gpu->uuid));
  return slice;
}

Result<MigSlice> MigPartitioner::make(const MigTarget& target, const MigProfile& profile,
                                      std::uint32_t start) {
  const auto instance = nvml_.create(target.device, profile.id, {start, profile.memory_slices});
  if (!instance)
    return fail_nvml(fmt::format("{}: {} at {}", name_of(target), profile.name, start),
                     instance.error());
  auto slice = complete(target, profile, start, *instance);
  if (slice) return slice;
  if (auto gone = take_away(*instance); !gone)
    slice.error().message += fmt::format("; and it stays half made: {}", to_string(gone.error()));
  return slice;
}

// Completes a new GPU instance, after checking what the driver made.
Result<MigSlice> MigPartitioner::complete(const MigTarget& target, const MigProfile& profile,
                                          std::uint32_t start, nvml::GpuInstance instance) {
  const std::string what = fmt::format("{}: {} at {}", name_of(target), profile.name, start);
  const auto info = nvml_.info(instance);
  if (!info) return fail_nvml(what, info.error());
  if (info->profile != profile.id || info->placement.start != start ||
      info->placement.size != profile.memory_slices)
    return fail(ErrorCode::io_error,
                fmt::format("{}: the driver made profile {} at {} of {}", what, info->profile,
                            info->placement.start, info->placement.size));
  const auto compute_profiles = nvml_.compute_profiles(instance);
  if (!compute_profiles) return fail_nvml(what, compute_profiles.error());
  const auto whole = std::ranges::find_if(
      *compute_profiles, [&](auto& one) { return one.slices == profile.compute_slices; });
  if (whole == compute_profiles->end())
    return fail(ErrorCode::unsupported,
                fmt::format("{}: the driver offers no compute instance of all {} slices", what,
                            profile.compute_slices));
  const auto compute = nvml_.create(instance, whole->id);
  if (!compute) return fail_nvml(what, compute.error());
  const auto made = nvml_.info(*compute);
  if (!made) return fail_nvml(what, made.error());
  const auto devices = devices_in(nvml_, target.device, info->id);
  if (!devices) return fail_nvml(what, devices.error());
  if (devices->size() != 1 || devices->front().compute_instance != made->id)
    return fail(ErrorCode::io_error,
                fmt::format("{}: the driver shows {} MIG devices in it", what, devices->size()));
  return MigSlice{profile.id, start, info->id, made->id, devices->front().uuid};
}

// Removes the compute instances, then the GPU instance. The driver refuses instances with
// processes.
Answer<void> MigPartitioner::take_away(nvml::GpuInstance instance) const {
  ASSIGN(inside, computes(instance));
  for (const nvml::ComputeInstance one : *inside) TRY(nvml_.destroy(one));
  return nvml_.destroy(instance);
}

Result<void> MigPartitioner::destroy(const MigTarget& target, const MigSlice& slice,
                                     std::span<const std::string> in_use) {
  const std::string what = fmt::format("{}: slice {}", name_of(target), slice.uuid);
  const auto present = instances(target);
  if (!present) return fail_nvml(what, present.error());
  for (const Instance& one : *present) {
    if (one.info.id != slice.gpu_instance) continue;
    const auto devices = devices_in(nvml_, target.device, one.info.id);
    if (!devices) return fail_nvml(what, devices.error());
    const bool same = one.profile->id == slice.profile && one.info.placement.start == slice.start &&
                      devices->size() == 1 && devices->front().uuid == slice.uuid;
    if (!same)
      return fail(ErrorCode::wrong_state,
                  fmt::format("{}: GPU instance {} is another one by now", what, one.info.id));
    const auto busy = why_busy(nvml_, *devices, in_use);
    if (!busy) return fail_nvml(what, busy.error());
    if (!busy->empty()) return fail(ErrorCode::wrong_state, fmt::format("{}: {}", what, *busy));
    if (auto begun = journal_.begin({MigStep::destroy, target.gpu->uuid, slice}); !begun)
      return begun;
    const auto gone = take_away(one.handle);
    if (!gone && gone.error().code != Return::in_use)
      return fail_nvml(what,
                       gone.error());  // it stays in the journal, and recover() continues with it
    TRY(journal_.done(target.gpu->uuid));
    if (!gone) return fail_nvml(what, gone.error());
    return {};
  }
  return {};
}

Result<MigJournal> MigJournal::open(const std::string& dir) {
  TRY(runtime::make_dirs(dir, 0700));
  Fd fd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return runtime::fail_errno(ErrorCode::io_error, dir);
  return MigJournal(dir, std::move(fd));
}

Result<void> MigJournal::begin(const MigIntent& intent) const {
  ASSIGN(name, file_of(intent.gpu));
  if (::faccessat(fd_.get(), name->c_str(), F_OK, 0) == 0)
    return fail(ErrorCode::wrong_state,
                fmt::format("{}: an earlier change of its slices is not finished", intent.gpu));
  return runtime::write_whole(fd_.get(), name->c_str(), codec::encode(intent),
                              runtime::Durability::durable);
}

Result<void> MigJournal::done(const std::string& gpu) const {
  ASSIGN(name, file_of(gpu));
  if ((::unlinkat(fd_.get(), name->c_str(), 0) != 0 && errno != ENOENT) || ::fsync(fd_.get()) != 0)
    return runtime::fail_errno(ErrorCode::io_error, dir_ + "/" + *name);
  return {};
}

Result<std::vector<MigIntent>> MigJournal::pending() const {
  std::vector<MigIntent> out;
  for (const std::string& name : runtime::list_dir(dir_)) {
    if (!name.starts_with(kPrefix)) continue;
    const auto bytes = runtime::read_file(dir_ + "/" + name, kMostBytes);
    const auto intent =
        bytes ? codec::decode<MigIntent>(*bytes) : Result<MigIntent>(tl::unexpected(bytes.error()));
    if (intent && name == std::string(kPrefix) + intent->gpu)
      out.push_back(*intent);
    else if (::unlinkat(fd_.get(), name.c_str(), 0) != 0)
      return runtime::fail_errno(ErrorCode::io_error, dir_ + "/" + name);
  }
  return out;
}

// Settles one intent that was not finished. The sentence tells the result; after an error the
// intent stays in the journal.
Result<std::string> MigPartitioner::settle(const MigTarget& target, const MigIntent& intent,
                                           std::span<const std::string> in_use) {
  const MigSlice& slice = intent.slice;
  const bool creating = intent.step == MigStep::create;
  const std::string what = fmt::format(
      "GPU {} ({}): {} at {}", target.gpu->index, target.gpu->pci,
      creating ? "a slice that was being made" : "a slice that was being destroyed", slice.start);
  const auto present = instances(target);
  if (!present) return fail_nvml(what, present.error());
  for (const Instance& one : *present) {
    if (one.profile->id != slice.profile || one.info.placement.start != slice.start) continue;
    if (!creating && one.info.id != slice.gpu_instance) continue;
    const auto inside = computes(one.handle);
    if (!inside) return fail_nvml(what, inside.error());
    if (creating && !inside->empty()) return what + " is complete";
    if (!inside->empty()) {
      const auto devices = nvml_.mig_devices(target.device);
      if (!devices) return fail_nvml(what, devices.error());
      for (const Nvml::MigDevice& device : *devices) {
        if (device.gpu_instance != one.info.id) continue;
        if (device.uuid != slice.uuid) return what + " is another one by now and stays";
        const auto processes = nvml_.processes(device.device);
        if (!processes) return fail_nvml(what, processes.error());
        if (!processes->empty() || std::ranges::find(in_use, device.uuid) != in_use.end())
          return what + " is in use and stays";
      }
    }
    if (auto gone = take_away(one.handle); !gone) return fail_nvml(what, gone.error());
    return what + (creating ? " was half made and is gone" : " is gone");
  }
  return what + (creating ? " had not been begun" : " was gone already");
}

Result<std::vector<std::string>> MigPartitioner::recover(std::span<const MigTarget> targets,
                                                         std::span<const std::string> in_use) {
  ASSIGN(pending, journal_.pending());
  std::vector<std::string> notes;
  for (const MigIntent& intent : *pending) {
    const auto target = std::ranges::find_if(
        targets, [&](const MigTarget& one) { return one.gpu->uuid == intent.gpu; });
    if (target == targets.end()) {
      // The GPU's MIG mode is off, or it has been reset, so its instances are gone too. A GPU that
      // has disappeared comes back, if at all, only after a reset.
      notes.push_back(
          fmt::format("{}: not partitioned any more, what was begun on it is dropped", intent.gpu));
    } else {
      auto note = settle(*target, intent, in_use);
      if (!note) {
        notes.push_back(note.error().message);
        continue;
      }
      notes.push_back(std::move(*note));
    }
    TRY(journal_.done(intent.gpu));
  }
  return notes;
}

Result<std::vector<std::string>> MigPartitioner::remove_empty(const MigTarget& target) {
  const std::string what = fmt::format("GPU {} ({})", target.gpu->index, target.gpu->pci);
  std::vector<std::string> notes;
  const auto present = instances(target);
  if (!present) return fail_nvml(what, present.error());
  for (const Instance& one : *present) {
    const auto inside = computes(one.handle);
    if (!inside) return fail_nvml(what, inside.error());
    if (!inside->empty()) continue;
    if (auto gone = nvml_.destroy(one.handle); !gone) return fail_nvml(what, gone.error());
    notes.push_back(
        fmt::format("{}: GPU instance {} ({} at {}) had no compute instance and is gone", what,
                    one.info.id, one.profile->name, one.info.placement.start));
  }
  return notes;
}

}  // namespace gantry::gpu
