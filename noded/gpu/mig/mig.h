// Makes and destroys slices (a GPU instance with one compute instance of all its compute slices) at
// a given place, one at a time on a GPU, and repairs what a crash left incomplete.
//
// Promises: the caller chooses the place, never the driver. What the driver made is checked before
// it is used. A slice that has a process or is `in_use` is never touched, nor one that has been
// replaced by another (ids are reused, so the UUID decides). After a crash at any moment, recover()
// leaves each slice complete or removed, and no instance made by Gantry without the rest of its
// slice.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/resources/gpu.h"
#include "common/result.h"
#include "noded/gpu/nvml/discover.h"
#include "noded/machine/files.h"

namespace gantry::gpu {

// Stores on disk what will be done to a GPU's slices, before the driver is called. So if the daemon
// dies in between, the next one knows what to finish or undo. There is one small file for each GPU,
// `mig-<uuid>`, because only one slice of a GPU is changed at a time.
enum class MigStep : std::uint8_t { create = 1, destroy = 2 };
constexpr auto enum_names(MigStep) {
  return std::array<std::pair<MigStep, std::string_view>, 2>{
      {{MigStep::create, "create"}, {MigStep::destroy, "destroy"}}};
}

struct MigIntent {
  MigStep step = MigStep::create;
  std::string gpu;  // UUID
  MigSlice slice;   // for `create` only profile and start are set
  GANTRY_FIELDS(FIELD(1, step), FIELD(2, gpu), FIELD(3, slice))
  friend bool operator==(const MigIntent&, const MigIntent&) = default;
};

class MigJournal {
 public:
  static Result<MigJournal> open(const std::string& dir);  // makes the directory if there is none

  // Durable when it returns. Error wrong_state: an intent for the same GPU is not finished; call
  // recover() first.
  [[nodiscard]] Result<void> begin(const MigIntent& intent) const;
  [[nodiscard]] Result<void> done(const std::string& gpu) const;
  // Intents that are not finished. A file that cannot be read was never written completely, and is
  // removed.
  [[nodiscard]] Result<std::vector<MigIntent>> pending() const;

 private:
  MigJournal(std::string dir, Fd fd) : dir_(std::move(dir)), fd_(std::move(fd)) {}
  std::string dir_;
  Fd fd_;
};

// A GPU to work on; it belongs to a discovery, which must outlive this object.
struct MigTarget {
  nvml::Device device = nullptr;
  const GpuDevice* gpu = nullptr;
  const MigGeometry* geometry = nullptr;
};
// The GPUs of a discovery that are in MIG mode.
std::vector<MigTarget> mig_targets(const Discovery& found);

class MigPartitioner {
 public:
  MigPartitioner(const Nvml& nvml, MigJournal journal)
      : nvml_(nvml), journal_(std::move(journal)) {}

  // Errors: invalid_argument: there is no such profile or place; wrong_state: the message names
  // what blocks the place.
  Result<MigSlice> create(const MigTarget& target, std::uint32_t profile, std::uint32_t start);

  // `in_use` has the UUIDs of slices that jobs have. Error wrong_state: the slice is in use, or was
  // replaced by another. If it is gone already, the call succeeds.
  Result<void> destroy(const MigTarget& target, const MigSlice& slice,
                       std::span<const std::string> in_use);

  // Call it when the daemon starts, before slices are looked for, and again after an error. It
  // returns one sentence for each thing repaired. What could not be repaired stays in the journal.
  Result<std::vector<std::string>> recover(std::span<const MigTarget> targets,
                                           std::span<const std::string> in_use);

  // Removes GPU instances without a compute instance, whoever made them: nothing can run in these.
  // For nodes on which Gantry manages the slices.
  Result<std::vector<std::string>> remove_empty(const MigTarget& target);

 private:
  struct Instance {
    nvml::GpuInstance handle = nullptr;
    nvml::GpuInstanceInfo info{};
    const MigProfile* profile = nullptr;
  };
  Answer<std::vector<Instance>> instances(const MigTarget& target) const;
  Answer<std::vector<nvml::ComputeInstance>> computes(nvml::GpuInstance instance) const;
  Result<const MigProfile*> check_place(const MigTarget& target, std::uint32_t profile,
                                        std::uint32_t start) const;
  Result<MigSlice> make(const MigTarget& target, const MigProfile& profile, std::uint32_t start);
  Result<MigSlice> complete(const MigTarget& target, const MigProfile& profile, std::uint32_t start,
                            nvml::GpuInstance instance);
  Answer<void> take_away(nvml::GpuInstance instance) const;
  Result<std::string> settle(const MigTarget& target, const MigIntent& intent,
                             std::span<const std::string> in_use);

  const Nvml& nvml_;
  MigJournal journal_;
};

}  // namespace gantry::gpu
