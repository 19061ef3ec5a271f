// The node's GPUs as its driver describes them, in the order of their PCI addresses, with the
// existing slices and the slices into which each model can be partitioned: the tables of placements
// are the driver's own.
//
// Discovery changes nothing. A GPU that does not answer is left out or gets a fault; a problem with
// one GPU never hides the others.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/resources/gpu.h"
#include "noded/gpu/nvml/nvml.h"

namespace gantry::gpu {

// The directories in which the kernel shows devices; other than the default only in tests and the
// demo.
struct Roots {
  std::string dev = "/dev";
  std::string proc = "/proc";
  std::string sys = "/sys";
};

struct Discovery {
  GpuInventory inventory;
  // Handles of inventory.gpus, by index; nullptr for a GPU that is known and does not answer
  // (KnownGpus).
  std::vector<nvml::Device> devices;
  std::vector<std::string> warnings;  // one sentence each
};

// `now` is stored as the time at which faults that are found here began.
Discovery discover(const Nvml& nvml, const Roots& roots, Instant now);

// The inventory of a node whose library could not be opened; its why_none has the reason.
GpuInventory no_gpus(const Error& why);

// "NVIDIA H100 80GB HBM3" -> "h100", "Tesla V100-SXM2-16GB" -> "v100", "NVIDIA A100-SXM4-40GB" ->
// "a100"; an unknown name gives the words that name the model: "GeForce RTX 4090" -> "rtx-4090".
std::string model_of(std::string_view name);

// The slices of one GPU: GPU instances with one compute instance that has all their compute slices.
// Other instances are listed in `warnings`. Ascending by start.
Answer<std::vector<MigSlice>> slices_of(const Nvml& nvml, nvml::Device device,
                                        const std::vector<MigProfile>& profiles,
                                        std::vector<std::string>& warnings);

// The slices into which a model can be partitioned; no profiles if it cannot be. `model` is filled
// in.
Answer<MigGeometry> geometry_of(const Nvml& nvml, nvml::Device device, const std::string& model);

const MigGeometry* find_geometry(const GpuInventory& inventory, std::string_view model);
const MigProfile* find_profile(const MigGeometry& geometry, std::uint32_t id);

// ---- after a restart

// The differences between the slices that a GPU should have and those that it has. Two slices are
// the same if profile, start and UUID are equal: the driver reuses ids.
struct Difference {
  std::vector<MigSlice> kept;     // slices as they are now
  std::vector<MigSlice> missing;  // wanted but gone; their UUIDs never come back
  std::vector<MigSlice> foreign;  // present, but not wanted
};
Difference reconcile(const std::vector<MigSlice>& wanted, const std::vector<MigSlice>& present);

// The index of each GPU. The indexes are kept until the machine is rebooted, because jobs name GPUs
// by them. Discovery counts only the GPUs that answer; so without this, when a GPU fails its
// neighbours would get other indexes, and jobs would refer to the wrong GPUs.
struct KnownGpus {
  std::string boot_id;          // after a reboot no running job has an index, so all is forgotten
  std::vector<GpuDevice> gpus;  // as last reported, by index, with their faults
  // The most NVLinks of each GPU that were up at the same time.
  std::vector<std::uint32_t> links{};
  std::int64_t log_seen_us = 0;  // time in the kernel's log up to which Xids were handled
  // By UUID of a GPU, for each of its memory slices: which tenant had it last. "" = not known, "-"
  // = none since it was overwritten, "=NAME" = this tenant.
  std::map<std::string, std::vector<std::string>> memory{};
  GANTRY_FIELDS(FIELD(1, boot_id), FIELD(2, gpus), FIELD(3, links), FIELD(4, log_seen_us),
                FIELD(5, memory))
};

// Gives the GPUs of `found` their known indexes, by UUID. A known GPU that was not found keeps its
// place with its last known facts, with the fault gpu-lost and no handle; a new GPU gets the next
// free index.
void keep_indexes(Discovery& found, const KnownGpus& known, Instant now);

// Loads a small file in `dir`. If it is missing, or from before a reboot, nothing is known.
Result<KnownGpus> load_known(const std::string& dir, const std::string& boot_id);
Result<void> store_known(const std::string& dir, const KnownGpus& known);

}  // namespace gantry::gpu
