// The node's GPUs as its driver describes them, in the order of their PCI addresses, with the
// slices that exist now and the slices into which each model can be cut: the tables of placements
// are the driver's own.
//
// Discovery changes nothing. A GPU that does not answer is left out or gets a fault; a problem with
// one GPU never hides the others.
#pragma once

#include <string>
#include <vector>

#include "common/resources/gpu.h"
#include "noded/gpu/nvml/nvml.h"

namespace gantry::gpu {

// The directories in which the kernel shows devices; they differ from the default only in tests and
// the demo.
struct Roots {
  std::string dev = "/dev";
  std::string proc = "/proc";
  std::string sys = "/sys";
};

struct Discovery {
  GpuInventory inventory;
  // Handles of inventory.gpus, by index; nullptr for a GPU that is known and does not answer
  // (known.h).
  std::vector<nvml::Device> devices;
  std::vector<std::string> warnings;  // one sentence each
};

// `now` becomes the time at which faults that are found here began.
Discovery discover(const Nvml& nvml, const Roots& roots, Instant now);

// The inventory of a node whose library could not be opened; its why_none says so.
GpuInventory no_gpus(const Error& why);

// "NVIDIA H100 80GB HBM3" -> "h100", "Tesla V100-SXM2-16GB" -> "v100", "NVIDIA A100-SXM4-40GB" ->
// "a100"; an unknown name gives the words that name the model: "GeForce RTX 4090" -> "rtx-4090".
std::string model_of(std::string_view name);

// The slices of one GPU: GPU instances with one compute instance that has all their compute slices.
// Other instances are named in `warnings`. Ascending by start.
Answer<std::vector<MigSlice>> slices_of(const Nvml& nvml, nvml::Device device,
                                        const std::vector<MigProfile>& profiles,
                                        std::vector<std::string>& warnings);

// How a model can be cut into slices; it has no profiles if it cannot be. `model` is filled in.
Answer<MigGeometry> geometry_of(const Nvml& nvml, nvml::Device device, const std::string& model);

const MigGeometry* find_geometry(const GpuInventory& inventory, std::string_view model);
const MigProfile* find_profile(const MigGeometry& geometry, std::uint32_t id);

// ---- after a restart

// How the slices that a GPU should have differ from those that it has. Two slices are the same if
// profile, start and UUID are equal: the driver reuses ids.
struct Difference {
  std::vector<MigSlice> kept;     // as they are now
  std::vector<MigSlice> missing;  // wanted, but gone: their UUIDs never come back
  std::vector<MigSlice> foreign;  // present, but not wanted
};
Difference reconcile(const std::vector<MigSlice>& wanted, const std::vector<MigSlice>& present);

}  // namespace gantry::gpu
