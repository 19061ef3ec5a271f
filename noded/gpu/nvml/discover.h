// The node's GPUs as its driver describes them, in order of their PCI addresses, with the slices
// that exist now and what each model can be cut into: placement tables are the driver's own.
//
// Nothing is changed by looking. A GPU that does not answer is left out or comes with a fault; what
// cannot be told about one GPU never hides the others.
#pragma once

#include <string>
#include <vector>

#include "common/resources/gpu.h"
#include "noded/gpu/nvml/nvml.h"

namespace gantry::gpu {

// Where the kernel's view is; other than the default only in tests and the demo.
struct Roots {
  std::string dev = "/dev";
  std::string proc = "/proc";
  std::string sys = "/sys";
};

struct Discovery {
  GpuInventory inventory;
  // Of inventory.gpus, by index; nullptr of one that is known and does not answer (known.h).
  std::vector<nvml::Device> devices;
  std::vector<std::string> warnings;  // one sentence each
};

// `now` is when faults that are found here began.
Discovery discover(const Nvml& nvml, const Roots& roots, Instant now);

// For a node whose library could not be opened: why_none says so.
GpuInventory no_gpus(const Error& why);

// "NVIDIA H100 80GB HBM3" -> "h100", "Tesla V100-SXM2-16GB" -> "v100", "NVIDIA A100-SXM4-40GB" ->
// "a100"; of an unknown name the words that name the model: "GeForce RTX 4090" -> "rtx-4090".
std::string model_of(std::string_view name);

// The slices of one GPU: GPU instances with one compute instance that has all of their compute
// slices. Others are named in `warnings`. Ascending by start.
Answer<std::vector<MigSlice>> slices_of(const Nvml& nvml, nvml::Device device,
                                        const std::vector<MigProfile>& profiles,
                                        std::vector<std::string>& warnings);

// What a model can be cut into; no profiles when it cannot. `model` is filled in.
Answer<MigGeometry> geometry_of(const Nvml& nvml, nvml::Device device, const std::string& model);

const MigGeometry* find_geometry(const GpuInventory& inventory, std::string_view model);
const MigProfile* find_profile(const MigGeometry& geometry, std::uint32_t id);

// ---- after a restart

// How the slices that shall be on a GPU and those that are differ. A slice is the same when
// profile, start and UUID are: ids of the driver are reused.
struct Difference {
  std::vector<MigSlice> kept;     // as present
  std::vector<MigSlice> missing;  // wanted, and not there any more: their UUIDs are gone for good
  std::vector<MigSlice> foreign;  // there, and not wanted
};
Difference reconcile(const std::vector<MigSlice>& wanted, const std::vector<MigSlice>& present);

}  // namespace gantry::gpu
