// Making and destroying slices (a GPU instance with one compute instance of all its compute slices)
// at a given place, one at a time on a GPU, and putting right what a crash left half done.
//
// Promises: the place is the caller's, never the driver's choice. What the driver made is looked at
// before it is handed out. Nothing that has a process or that is `in_use` is ever touched, nor a
// slice that is another one by now (ids are reused: the UUID decides). After a crash at any moment
// recover() leaves each slice whole or gone, and no instance of ours without the rest of it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "noded/gpu/mig/mig_journal.h"
#include "noded/gpu/nvml/discover.h"

namespace gantry::gpu {

// A GPU to work on; of one discovery, which outlives this.
struct MigTarget {
  nvml::Device device = nullptr;
  const GpuDevice* gpu = nullptr;
  const MigGeometry* geometry = nullptr;
};
// Those of a discovery that have MIG on.
std::vector<MigTarget> mig_targets(const Discovery& found);

class MigPartitioner {
 public:
  MigPartitioner(const Nvml& nvml, MigJournal journal)
      : nvml_(nvml), journal_(std::move(journal)) {}

  // invalid_argument: no such profile or place; wrong_state: something is in the way, by name.
  Result<MigSlice> create(const MigTarget& target, std::uint32_t profile, std::uint32_t start);

  // `in_use`: UUIDs of slices that jobs have. wrong_state: in use, or another slice by now; already
  // gone is done.
  Result<void> destroy(const MigTarget& target, const MigSlice& slice,
                       std::span<const std::string> in_use);

  // When the daemon starts, before slices are looked for, and again after an error: a sentence for
  // each thing put right. What could not be put right stays in the journal.
  Result<std::vector<std::string>> recover(std::span<const MigTarget> targets,
                                           std::span<const std::string> in_use);

  // GPU instances without a compute instance, which nothing can run in, whoever made them: for
  // nodes whose layout is Gantry's.
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
