#include "ctld/core/job/reported.h"

#include <algorithm>

#include <fmt/core.h>

#include "common/codec/texts.h"
#include "common/proto/steps.h"
#include "common/text/printable.h"

namespace gantry::core {
namespace {

constexpr std::size_t kMostGpusOfNode = 512;  // GPUs of a node, whole; or 64 GPUs in slices
constexpr std::size_t kMostInventoryText = 256 << 10;      // bytes of all texts of an inventory
constexpr std::size_t kMostInventoryItems = 16'384;        // GPUs, links, slices, faults, profiles
constexpr std::size_t kMostSeriesBytes = 8 << 10;          // bytes of one series
constexpr std::int64_t kMostUsed = std::int64_t{1} << 56;  // microseconds or bytes on one node

}  // namespace

Usage held_to_possible(const Usage& usage) {
  Usage out = usage;
  for (std::int64_t* n : {&out.cpu_user_us, &out.cpu_system_us, &out.memory_peak_bytes,
                          &out.io_read_bytes, &out.io_write_bytes})
    *n = std::clamp(*n, std::int64_t{0}, kMostUsed);
  if (out.gpus.size() > kMostGpusOfNode) out.gpus.resize(kMostGpusOfNode);
  for (GpuUsage& gpu : out.gpus)
    if (gpu.name.size() > kMostGpuName) gpu.name = printable(gpu.name.substr(0, kMostGpuName));
  std::erase_if(out.gpus, [](const GpuUsage& gpu) { return gpu.data.size() > kMostSeriesBytes; });
  return out;
}

GpuInventory held_to_possible(GpuInventory gpus) {
  std::size_t bytes = 0, items = gpus.gpus.size() + gpus.geometries.size();
  codec::each_text(gpus, [&](std::string_view, const std::string& text) { bytes += text.size(); });
  for (const GpuDevice& gpu : gpus.gpus)
    items += gpu.slices.size() + gpu.nvlinks.size() + gpu.faults.size();
  for (const MigGeometry& geometry : gpus.geometries)
    for (const MigProfile& profile : geometry.profiles) items += 1 + profile.starts.size();
  if (bytes <= kMostInventoryText && items <= kMostInventoryItems) return gpus;
  GpuInventory none;
  none.why_none = fmt::format(
      "the node's report of its GPUs has {} bytes of texts and {} parts; at most {} and {} are "
      "taken",
      bytes, items, kMostInventoryText, kMostInventoryItems);
  return none;
}

void hold_to_possible(proto::StepDone& done, Instant job_began, Instant now) {
  done.exit.code = std::clamp(done.exit.code, 0, 255);
  done.exit.signal = std::clamp(done.exit.signal, 0, 64);
  done.ended = std::clamp(done.ended, job_began, std::max(job_began, now));
  done.started = std::clamp(done.started, job_began, done.ended);
  done.usage.gpus.clear();
  done.usage = held_to_possible(done.usage);
}

}  // namespace gantry::core
