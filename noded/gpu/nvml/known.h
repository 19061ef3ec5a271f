// Which index each GPU has, kept for as long as the machine is up: jobs name GPUs by it. Discovery
// counts those that answer, so without this a GPU that falls off the bus would give its neighbours
// other numbers, and other people's jobs other GPUs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "noded/gpu/nvml/discover.h"

namespace gantry::gpu {

struct KnownGpus {
  std::string boot_id;          // of another boot: nothing runs that has a number, all begins anew
  std::vector<GpuDevice> gpus;  // as last told, by index, with their faults
  // Of each, the NVLinks that have been up at once.
  std::vector<std::uint32_t> links{};
  std::int64_t log_seen_us = 0;  // of the kernel's log: Xids up to then are dealt with
  // By UUID of the GPU, of each of its memory slices: whose it was last. "" = not known, "-" =
  // nobody's since it was overwritten, "=NAME" = of that tenant.
  std::map<std::string, std::vector<std::string>> memory{};
  template <class S, class V>
  static void fields(S& s, V&& v) {
    v(1, "boot_id", s.boot_id);
    v(2, "gpus", s.gpus);
    v(3, "links", s.links);
    v(4, "log_seen_us", s.log_seen_us);
    v(5, "memory", s.memory);
  }
};

// Gives `found` the known indexes, by UUID. A known one that is not found is put in its place as it
// was, with the fault gpu-lost and no handle; one that is new comes behind.
void keep_indexes(Discovery& found, const KnownGpus& known, Instant now);

// A small file in `dir`. One that is missing, or of another boot, knows nothing.
Result<KnownGpus> load_known(const std::string& dir, const std::string& boot_id);
Result<void> store_known(const std::string& dir, const KnownGpus& known);

}  // namespace gantry::gpu
