// The node's GPUs as its driver describes them, in the order of their PCI addresses, with the
// slices that exist now and the slices into which each model can be cut: the tables of placements
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
  // (KnownGpus).
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

// The index that each GPU has. The indexes are kept for as long as the machine is up, because jobs
// name GPUs by them. Discovery counts only the GPUs that answer; so without this, a GPU that falls
// off the bus would give its neighbours other indexes, and jobs of other people other GPUs.
struct KnownGpus {
  std::string boot_id;  // after another boot no job runs that has an index, so all begins anew
  std::vector<GpuDevice> gpus;  // as last reported, by index, with their faults
  // How many NVLinks of each GPU have been up at the same time.
  std::vector<std::uint32_t> links{};
  std::int64_t log_seen_us = 0;  // time in the kernel's log up to which Xids were handled
  // By UUID of a GPU, for each of its memory slices: which tenant had it last. "" = not known, "-"
  // = nobody since it was overwritten, "=NAME" = this tenant.
  std::map<std::string, std::vector<std::string>> memory{};
  GANTRY_FIELDS(FIELD(1, boot_id), FIELD(2, gpus), FIELD(3, links), FIELD(4, log_seen_us),
                FIELD(5, memory))
};

// Gives the GPUs of `found` their known indexes, by UUID. A known GPU that was not found is put
// into its place as it was, with the fault gpu-lost and no handle; a new GPU gets the next free
// index.
void keep_indexes(Discovery& found, const KnownGpus& known, Instant now);

// Loads a small file in `dir`. If it is missing, or from another boot, nothing is known.
Result<KnownGpus> load_known(const std::string& dir, const std::string& boot_id);
Result<void> store_known(const std::string& dir, const KnownGpus& known);

}  // namespace gantry::gpu
