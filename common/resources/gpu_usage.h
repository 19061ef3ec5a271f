// What a job did on one GPU or slice of one node. It is stored with the job in about a kilobyte;
// noded/gpu/health/sample.h makes it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/fields.h"
#include "common/time/time.h"
#include "common/types.h"

namespace gantry {

// What was done about data that an earlier tenant may have left in a device's memory.
enum class GpuScrub : std::uint8_t {
  not_needed = 0,  // the same tenant had it before, or nobody since it was overwritten
  done = 1,
  not_possible = 2,  // the note tells why; the node's policy allowed the job to start
  off = 3,           // noded.gpu_scrub: off
};
GANTRY_NAMES(GpuScrub, {not_needed, "not_needed"}, {done, "done"}, {not_possible, "not_possible"},
             {off, "off"})

struct GpuUsage {
  std::string uuid;  // of the GPU or slice
  std::string name;  // "h100", "h100 1g.10gb"
  Instant start{};
  Duration interval{};
  std::uint32_t points = 0;
  Bytes data;  // noded/gpu/health/sample.h, encode_points
  std::uint64_t samples = 0;
  std::uint32_t busy_permille = 0;  // mean over the samples that had a value
  std::uint64_t busy_samples = 0;   // samples that had a value
  std::uint32_t memory_peak_mib = 0;
  std::uint64_t energy_j = 0;           // power times time between samples
  std::optional<Instant> last_busy;     // unset: never seen busy
  std::optional<Instant> last_process;  // unset: never seen with a process
  std::string node;
  std::uint32_t gpu = 0;         // GpuDevice::index
  std::uint32_t memory_mib = 0;  // memory of the device
  GpuScrub scrub = GpuScrub::not_needed;
  std::string scrub_note;
  friend bool operator==(const GpuUsage&, const GpuUsage&) = default;

  GANTRY_FIELDS(FIELD(1, uuid), FIELD(2, name), FIELD(3, start), FIELD(4, interval),
                FIELD(5, points), FIELD(6, data), FIELD(7, samples), FIELD(8, busy_permille),
                FIELD(9, busy_samples), FIELD(10, memory_peak_mib), FIELD(11, energy_j),
                FIELD(12, last_busy), FIELD(13, last_process), FIELD(14, node), FIELD(15, gpu),
                FIELD(16, memory_mib), FIELD(17, scrub), FIELD(18, scrub_note))
};

}  // namespace gantry
