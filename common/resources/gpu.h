// GPUs as node daemon, controller and scheduler describe them. Each node's driver reports how its
// GPUs can be partitioned; Gantry contains no table of models.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/fields.h"
#include "common/quantity.h"
#include "common/special_members.h"
#include "common/time/time.h"

namespace gantry {

// A MIG profile of one GPU model, as the driver describes it. Placements are counted in memory
// slices. The instances of a GPU do not overlap in memory slices, and together have no more compute
// slices than the GPU.
struct MigProfile {
  std::string name;                   // "1g.10gb"
  std::uint32_t id = 0;               // id that the driver's calls take, not the profile index
  std::uint32_t compute_slices = 0;   // 1..compute slices of the GPU
  std::uint32_t memory_slices = 0;    // 1..memory slices of the GPU
  std::int64_t memory = 0;            // bytes
  std::uint32_t max_instances = 0;    // on one GPU
  std::vector<std::uint32_t> starts;  // legal ones, ascending

  GANTRY_FIELDS(FIELD(1, name), FIELD(2, id), FIELD(3, compute_slices), FIELD(4, memory_slices),
                FIELD(5, memory), FIELD(6, max_instances), FIELD(7, starts))
  friend bool operator==(const MigProfile&, const MigProfile&) = default;
};

// How GPUs of one model can be partitioned; the same for all GPUs of that model in a node.
struct MigGeometry {
  std::string model;                 // lower case, "h100"
  std::uint32_t compute_slices = 0;  // 7, on an A30 4
  std::uint32_t memory_slices = 0;   // 8, on an A30 4
  std::vector<MigProfile> profiles;  // ascending by id

  GANTRY_FIELDS(FIELD(1, model), FIELD(2, compute_slices), FIELD(3, memory_slices),
                FIELD(4, profiles))
  friend bool operator==(const MigGeometry&, const MigGeometry&) = default;
};

// A slice that exists or shall be made: where it is on its GPU, and what the driver calls it.
struct MigSlice {
  std::uint32_t profile = 0;       // MigProfile::id
  std::uint32_t start = 0;         // memory slice
  std::uint32_t gpu_instance = 0;  // the driver's ids, which are used again after a slice is gone
  std::uint32_t compute_instance = 0;  // it has all compute slices of the GPU instance
  std::string uuid;                    // "MIG-…", new each time the slice is made

  GANTRY_FIELDS(FIELD(1, profile), FIELD(2, start), FIELD(3, gpu_instance),
                FIELD(4, compute_instance), FIELD(5, uuid))
  friend bool operator==(const MigSlice&, const MigSlice&) = default;
};

// What a failure affects, from the least to the most.
enum class FaultDomain : std::uint8_t { none = 0, slice = 1, gpu = 2, node = 3 };
GANTRY_NAMES(FaultDomain, {none, "none"}, {slice, "slice"}, {gpu, "gpu"}, {node, "node"})

struct GpuFault {
  FaultDomain domain = FaultDomain::none;
  std::string cause;               // "gpu-xid-79: fallen off the bus"
  std::uint32_t gpu_instance = 0;  // set with domain slice
  Instant since{};

  GANTRY_FIELDS(FIELD(1, domain), FIELD(2, cause), FIELD(3, gpu_instance), FIELD(4, since))
  friend bool operator==(const GpuFault&, const GpuFault&) = default;
};

struct GpuDevice {
  GANTRY_SPECIAL_MEMBERS(GpuDevice)
  std::uint32_t index = 0;             // number in the order of PCI addresses; grants refer to it
  std::string uuid;                    // "GPU-…"
  std::string name;                    // name given by the driver, "NVIDIA H100 80GB HBM3"
  std::string model;                   // lower case, "h100"
  std::string pci;                     // "0000:3b:00.0"
  std::uint32_t minor = 0;             // minor of /dev/nvidia<minor>, which is not the index
  std::int32_t numa = -1;              // -1 = not known
  std::int64_t memory = 0;             // bytes
  bool mig = false;                    // MIG mode is on: only slices can be used
  std::vector<MigSlice> slices;        // existing slices
  std::vector<std::uint32_t> nvlinks;  // links to each of the node's GPUs, by index
  std::vector<GpuFault> faults;

  GANTRY_FIELDS(FIELD(1, index), FIELD(2, uuid), FIELD(3, name), FIELD(4, model), FIELD(5, pci),
                FIELD(6, minor), FIELD(7, numa), FIELD(8, memory), FIELD(9, mig), FIELD(10, slices),
                FIELD(11, nvlinks), FIELD(12, faults))
  friend bool operator==(const GpuDevice&, const GpuDevice&) = default;
};

// What a job has of one GPU: the whole GPU, a part of it, a MIG slice, or a part of a slice.
struct GpuGrant {
  std::uint16_t gpu = 0;                                // GpuDevice::index
  std::optional<std::uint32_t> profile;                 // a MIG slice: MigProfile::id
  std::uint16_t start = 0;                              // first memory slice of the slice
  GpuThousandths::in<std::uint16_t> thousandths{1000};  // weight in quota and charges
  DevicePart::in<std::uint16_t> of_slice{1000};         // part of the slice

  [[nodiscard]] bool whole() const { return !profile && thousandths == kOneGpu; }
  // The part of the device: of the slice, or of the GPU if there is no slice.
  [[nodiscard]] DevicePart of_device() const {
    return profile ? DevicePart{of_slice} : part_of_gpu(thousandths);
  }
  [[nodiscard]] bool part() const { return of_device() != kWholeDevice; }
  friend bool operator==(const GpuGrant&, const GpuGrant&) = default;
  GANTRY_FIELDS(FIELD(1, gpu), FIELD(2, profile), FIELD(3, start), FIELD(4, thousandths),
                FIELD(5, of_slice))
};

// Everything that a node reports about its GPUs.
struct GpuInventory {
  GANTRY_SPECIAL_MEMBERS(GpuInventory)
  std::string driver;    // version; "" = no driver
  std::string cuda;      // newest CUDA that it supports, "12.4"
  std::string why_none;  // if there are no GPUs: the reason, as a clause
  std::vector<GpuDevice> gpus;
  std::vector<MigGeometry> geometries;  // of the models that can be partitioned
  std::string cannot_share;  // why parts of GPUs are not available although declared; "" = they are

  GANTRY_FIELDS(FIELD(1, driver), FIELD(2, cuda), FIELD(3, why_none), FIELD(4, gpus),
                FIELD(5, geometries), FIELD(6, cannot_share))
  friend bool operator==(const GpuInventory&, const GpuInventory&) = default;
};

}  // namespace gantry
