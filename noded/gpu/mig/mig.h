// Makes and destroys slices (a GPU instance with one compute instance of all its compute slices) at
// a given place, one at a time on a GPU, and repairs what a crash left half done.
//
// Promises: the caller chooses the place, never the driver. What the driver made is checked before
// it is handed out. A slice that has a process or is `in_use` is never touched, nor one that is
// another slice by now (ids are reused, so the UUID decides). After a crash at any moment recover()
// leaves each slice whole or gone, and no instance of ours without the rest of its slice.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "noded/gpu/mig/mig_journal.h"
#include "noded/gpu/nvml/discover.h"

namespace gantry::gpu {

// A GPU to work on; it belongs to a discovery, which must outlive this.
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

  // invalid_argument: there is no such profile or place; wrong_state: the message names what is in
  // the way.
  Result<MigSlice> create(const MigTarget& target, std::uint32_t profile, std::uint32_t start);

  // `in_use` has the UUIDs of slices that jobs have. wrong_state: the slice is in use, or is
  // another one by now. If it is gone already, the call succeeds.
  Result<void> destroy(const MigTarget& target, const MigSlice& slice,
                       std::span<const std::string> in_use);

  // Call it when the daemon starts, before slices are looked for, and again after an error. It
  // returns one sentence for each thing repaired. What could not be repaired stays in the journal.
  Result<std::vector<std::string>> recover(std::span<const MigTarget> targets,
                                           std::span<const std::string> in_use);

  // Removes GPU instances without a compute instance, whoever made them: nothing can run in these.
  // It is for nodes on which Gantry decides about slices.
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
