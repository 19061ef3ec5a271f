// GPUs as node daemon, controller and scheduler describe them. Each node's driver says how its GPUs
// can be partitioned; the product contains no table of models.
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

  template <class S, class V>
  static void fields(S& s, V&& v) {
    v(1, "name", s.name);
    v(2, "id", s.id);
    v(3, "compute_slices", s.compute_slices);
    v(4, "memory_slices", s.memory_slices);
    v(5, "memory", s.memory);
    v(6, "max_instances", s.max_instances);
    v(7, "starts", s.starts);
  }
  friend bool operator==(const MigProfile&, const MigProfile&) = default;
};

// How GPUs of one model can be cut; the same for all GPUs of that model in a node.
struct MigGeometry {
  std::string model;                 // lower case, "h100"
  std::uint32_t compute_slices = 0;  // 7, on an A30 4
  std::uint32_t memory_slices = 0;   // 8, on an A30 4
  std::vector<MigProfile> profiles;  // ascending by id

  template <class S, class V>
  static void fields(S& s, V&& v) {
    v(1, "model", s.model);
    v(2, "compute_slices", s.compute_slices);
    v(3, "memory_slices", s.memory_slices);
    v(4, "profiles", s.profiles);
  }
  friend bool operator==(const MigGeometry&, const MigGeometry&) = default;
};

// A slice that exists or shall be made: where it is on its GPU, and what the driver calls it.
struct MigSlice {
  std::uint32_t profile = 0;       // MigProfile::id
  std::uint32_t start = 0;         // memory slice
  std::uint32_t gpu_instance = 0;  // the driver's ids, which are used again after a slice is gone
  std::uint32_t compute_instance = 0;  // it has all compute slices of the GPU instance
  std::string uuid;                    // "MIG-…", new each time the slice is made

  template <class S, class V>
  static void fields(S& s, V&& v) {
    v(1, "profile", s.profile);
    v(2, "start", s.start);
    v(3, "gpu_instance", s.gpu_instance);
    v(4, "compute_instance", s.compute_instance);
    v(5, "uuid", s.uuid);
  }
  friend bool operator==(const MigSlice&, const MigSlice&) = default;
};

// What a failure affects, from the least to the most.
enum class FaultDomain : std::uint8_t { none = 0, slice = 1, gpu = 2, node = 3 };
constexpr auto enum_names(FaultDomain) {
  using enum FaultDomain;
  return std::array<std::pair<FaultDomain, std::string_view>, 4>{
      {{none, "none"}, {slice, "slice"}, {gpu, "gpu"}, {node, "node"}}};
}

struct GpuFault {
  FaultDomain domain = FaultDomain::none;
  std::string cause;               // "gpu-xid-79: fallen off the bus"
  std::uint32_t gpu_instance = 0;  // with domain slice
  Instant since{};

  template <class S, class V>
  static void fields(S& s, V&& v) {
    v(1, "domain", s.domain);
    v(2, "cause", s.cause);
    v(3, "gpu_instance", s.gpu_instance);
    v(4, "since", s.since);
  }
  friend bool operator==(const GpuFault&, const GpuFault&) = default;
};

struct GpuDevice {
  std::uint32_t index = 0;             // in order of PCI addresses; grants refer to it
  std::string uuid;                    // "GPU-…"
  std::string name;                    // name given by the driver, "NVIDIA H100 80GB HBM3"
  std::string model;                   // lower case, "h100"
  std::string pci;                     // "0000:3b:00.0"
  std::uint32_t minor = 0;             // of /dev/nvidia<minor>; not the index
  std::int32_t numa = -1;              // -1 = not known
  std::int64_t memory = 0;             // bytes
  bool mig = false;                    // MIG mode is on: only slices can be used
  std::vector<MigSlice> slices;        // that exist now
  std::vector<std::uint32_t> nvlinks;  // links to each of the node's GPUs, by index
  std::vector<GpuFault> faults;

  template <class S, class V>
  static void fields(S& s, V&& v) {
    v(1, "index", s.index);
    v(2, "uuid", s.uuid);
    v(3, "name", s.name);
    v(4, "model", s.model);
    v(5, "pci", s.pci);
    v(6, "minor", s.minor);
    v(7, "numa", s.numa);
    v(8, "memory", s.memory);
    v(9, "mig", s.mig);
    v(10, "slices", s.slices);
    v(11, "nvlinks", s.nvlinks);
    v(12, "faults", s.faults);
  }
  friend bool operator==(const GpuDevice&, const GpuDevice&) = default;
};

// What a job has of one GPU of a node: the whole GPU, a part of it, a MIG slice, or a part of a
// slice.
struct GpuGrant {
  std::uint16_t gpu = 0;                                // GpuDevice::index
  std::optional<std::uint32_t> profile;                 // a MIG slice: MigProfile::id
  std::uint16_t start = 0;                              // first memory slice of the slice
  GpuThousandths::in<std::uint16_t> thousandths{1000};  // as quota and charges count it
  DevicePart::in<std::uint16_t> of_slice{1000};         // of the slice

  [[nodiscard]] bool whole() const { return !profile && thousandths == kOneGpu; }
  // The part of the device: of the slice, or of the GPU if there is no slice.
  [[nodiscard]] DevicePart of_device() const {
    return profile ? DevicePart{of_slice} : part_of_gpu(thousandths);
  }
  [[nodiscard]] bool part() const { return of_device() != kWholeDevice; }
  friend bool operator==(const GpuGrant&, const GpuGrant&) = default;
  template <class S, class V>
  static void fields(S& s, V&& v) {
    v(1, "gpu", s.gpu);
    v(2, "profile", s.profile);
    v(3, "start", s.start);
    v(4, "thousandths", s.thousandths);
    v(5, "of_slice", s.of_slice);
  }
};

// Everything that a node reports about its GPUs.
struct GpuInventory {
  std::string driver;    // version; "" = no driver
  std::string cuda;      // newest CUDA that it supports, "12.4"
  std::string why_none;  // if there are no GPUs: one clause that says why
  std::vector<GpuDevice> gpus;
  std::vector<MigGeometry> geometries;  // of the models that can be partitioned
  std::string cannot_share;  // why parts of GPUs are not available although declared; "" = they are

  template <class S, class V>
  static void fields(S& s, V&& v) {
    v(1, "driver", s.driver);
    v(2, "cuda", s.cuda);
    v(3, "why_none", s.why_none);
    v(4, "gpus", s.gpus);
    v(5, "geometries", s.geometries);
    v(6, "cannot_share", s.cannot_share);
  }
  friend bool operator==(const GpuInventory&, const GpuInventory&) = default;
};

}  // namespace gantry
