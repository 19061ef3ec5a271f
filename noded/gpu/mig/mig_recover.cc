// MigPartitioner::recover() and its parts: what is done after a crash.
#include <fmt/core.h>

#include <algorithm>

#include "noded/gpu/mig/mig.h"

namespace gantry::gpu {

// Settles one intent that was not done. The sentence says what became of it; after an error the
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
        if (!processes->empty() ||
            std::find(in_use.begin(), in_use.end(), device.uuid) != in_use.end())
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
    const auto target = std::find_if(targets.begin(), targets.end(), [&](const MigTarget& one) {
      return one.gpu->uuid == intent.gpu;
    });
    if (target == targets.end()) {
      // The GPU's MIG mode is off, or it has been reset: then its instances are gone too. A GPU
      // that has disappeared altogether comes back, if it does, only after a reset.
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
