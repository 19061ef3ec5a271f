// The index that each GPU has. The indexes are kept for as long as the machine is up, because jobs
// name GPUs by them. Discovery counts only the GPUs that answer; so without this, a GPU that falls
// off the bus would give its neighbours other indexes, and jobs of other people other GPUs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/fields.h"
#include "noded/gpu/nvml/discover.h"

namespace gantry::gpu {

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
