// Exported functions for the activity and health of GPUs, and for GPM.
#include <algorithm>
#include <vector>

#include "tests/nvml/library.h"

using namespace gantry::fake;  // NOLINT: these are C functions
namespace nvml = gantry::gpu::nvml;

namespace {

std::uint64_t total_of(const Target& target) {
  return target.instance != nullptr
             ? memory_total(*target.gpu, *target.instance)
             : static_cast<std::uint64_t>(model_of(*target.gpu).memory_mib) << 20;
}

std::uint64_t used_of(const Target& target) {
  return target.instance != nullptr ? memory_used(*target.gpu, *target.instance)
                                    : memory_used(*target.gpu);
}

Return give(std::uint32_t value, std::uint32_t* out) {
  *out = value;
  return Return::success;
}

// Fills a list like NVML when its length is not known: if the buffer is too small, it returns the
// count.
Return give_processes(const char* call, nvml::Device device, std::uint32_t* count,
                      nvml::ProcessInfo* list, ProcessKind kind) {
  return on_device(call, device, count, [&](State&, const Target& target) {
    std::vector<nvml::ProcessInfo> found;
    for (const ProcessState& one : target.gpu->processes) {
      if (one.pid == 0 || one.kind != kind) continue;
      if (target.compute != nullptr &&
          (one.gpu_instance != target.instance->id || one.compute_instance != target.compute->id))
        continue;
      found.push_back({one.pid, one.bytes, one.gpu_instance, one.compute_instance});
    }
    const std::uint32_t room = *count;
    *count = static_cast<std::uint32_t>(found.size());
    if (found.empty()) return Return::success;
    if (list == nullptr || room < found.size()) return Return::insufficient_size;
    std::copy(found.begin(), found.end(), list);
    return Return::success;
  });
}

bool has_row_remapping(const GpuState& gpu) {
  return model_of(gpu).architecture >= Architecture::ampere;
}

// A GPM measurement: the utilisation of a GPU or of one of its instances when it was taken.
struct Measurement {
  bool taken = false;
  std::uint32_t gpu = 0, instance = 0;
  double utilization = 0;
};

Measurement* measurement_of(nvml::GpmSample sample) {
  return reinterpret_cast<Measurement*>(sample);
}

}  // namespace

NVML_API Return nvmlDeviceGetMemoryInfo(nvml::Device device, nvml::Memory* memory) {
  return on_device("nvmlDeviceGetMemoryInfo", device, memory, [&](State&, const Target& target) {
    *memory = {total_of(target), total_of(target) - used_of(target), used_of(target)};
    return Return::success;
  });
}

NVML_API Return nvmlDeviceGetMemoryInfo_v2(nvml::Device device, nvml::MemoryV2* memory) {
  return on_device("nvmlDeviceGetMemoryInfo_v2", device, memory, [&](State&, const Target& target) {
    if (memory->version != nvml::version_of<nvml::MemoryV2>(2))
      return Return::argument_version_mismatch;
    constexpr std::uint64_t kReserved = std::uint64_t{600} << 20;
    const std::uint64_t reserved = target.instance != nullptr ? 0 : kReserved;
    memory->total = total_of(target);
    memory->reserved = reserved;
    memory->used = used_of(target);
    memory->free = memory->total - std::min(memory->total, reserved + memory->used);
    return Return::success;
  });
}

NVML_API Return nvmlDeviceGetUtilizationRates(nvml::Device device, nvml::Utilization* out) {
  return on_gpu("nvmlDeviceGetUtilizationRates", device, out, [&](State&, const GpuState& gpu) {
    if (gpu.mig_now != 0) return Return::not_supported;
    *out = {gpu.utilization, gpu.memory_utilization};
    return Return::success;
  });
}

NVML_API Return nvmlDeviceGetPowerUsage(nvml::Device device, std::uint32_t* mw) {
  return on_gpu("nvmlDeviceGetPowerUsage", device, mw,
                [&](State&, const GpuState& gpu) { return give(gpu.power_mw, mw); });
}

NVML_API Return nvmlDeviceGetTemperature(nvml::Device device, std::uint32_t sensor,
                                         std::uint32_t* celsius) {
  return on_gpu("nvmlDeviceGetTemperature", device, celsius, [&](State&, const GpuState& gpu) {
    return sensor == 0 ? give(gpu.temperature, celsius) : Return::invalid_argument;
  });
}

NVML_API Return nvmlDeviceGetTemperatureThreshold(nvml::Device device, nvml::TemperatureLimit which,
                                                  std::uint32_t* celsius) {
  return on_gpu("nvmlDeviceGetTemperatureThreshold", device, celsius, [&](State&, const GpuState&) {
    return give(which == nvml::TemperatureLimit::shutdown ? 92 : 87, celsius);
  });
}

NVML_API Return nvmlDeviceGetCurrentClocksEventReasons(nvml::Device device, std::uint64_t* out) {
  return on_gpu("nvmlDeviceGetCurrentClocksEventReasons", device, out,
                [&](State&, const GpuState& gpu) {
                  *out = gpu.clock_reasons;
                  return Return::success;
                });
}
NVML_API Return nvmlDeviceGetCurrentClocksThrottleReasons(nvml::Device device, std::uint64_t* out) {
  return nvmlDeviceGetCurrentClocksEventReasons(device, out);
}

NVML_API Return nvmlDeviceGetTotalEccErrors(nvml::Device device, nvml::EccKind kind,
                                            nvml::EccSince since, std::uint64_t* out) {
  return on_gpu("nvmlDeviceGetTotalEccErrors", device, out, [&](State&, const GpuState& gpu) {
    *out = gpu.ecc[static_cast<int>(kind) & 1][static_cast<int>(since) & 1];
    return Return::success;
  });
}

NVML_API Return nvmlDeviceGetRetiredPages_v2(nvml::Device device, nvml::RetiredFor why,
                                             std::uint32_t* count, std::uint64_t* addresses,
                                             std::uint64_t* times) {
  return on_gpu("nvmlDeviceGetRetiredPages_v2", device, count, [&](State&, const GpuState& gpu) {
    if (has_row_remapping(gpu)) return Return::not_supported;
    const std::uint32_t all = gpu.retired[static_cast<int>(why) & 1], room = *count;
    *count = all;
    if (all == 0) return Return::success;
    if (addresses == nullptr || times == nullptr || room < all) return Return::insufficient_size;
    std::fill(addresses, addresses + all, 0);
    std::fill(times, times + all, 0);
    return Return::success;
  });
}

NVML_API Return nvmlDeviceGetRetiredPagesPendingStatus(nvml::Device device, std::uint32_t* out) {
  return on_gpu("nvmlDeviceGetRetiredPagesPendingStatus", device, out,
                [&](State&, const GpuState& gpu) {
                  if (has_row_remapping(gpu)) return Return::not_supported;
                  return give(gpu.retired_pending, out);
                });
}

NVML_API Return nvmlDeviceGetRemappedRows(nvml::Device device, std::uint32_t* corrected,
                                          std::uint32_t* uncorrected, std::uint32_t* pending,
                                          std::uint32_t* failed) {
  return on_gpu("nvmlDeviceGetRemappedRows", device, corrected, [&](State&, const GpuState& gpu) {
    if (!has_row_remapping(gpu)) return Return::not_supported;
    *corrected = gpu.remapped[0];
    *uncorrected = gpu.remapped[1];
    *pending = gpu.remap_pending;
    *failed = gpu.remap_failed;
    return Return::success;
  });
}

NVML_API Return nvmlDeviceGetFieldValues(nvml::Device device, std::int32_t count,
                                         nvml::FieldValue* values) {
  return on_gpu("nvmlDeviceGetFieldValues", device, values, [&](State&, const GpuState& gpu) {
    for (std::int32_t i = 0; i < count; ++i) {
      const bool known = values[i].field == nvml::kFieldRecoveryAction;
      values[i].result = known ? Return::success : Return::not_supported;
      values[i].type = 1;
      values[i].value.u32 = known ? gpu.recovery_action : 0;
    }
    return Return::success;
  });
}

NVML_API Return nvmlDeviceGetComputeRunningProcesses_v3(nvml::Device device, std::uint32_t* count,
                                                        nvml::ProcessInfo* list) {
  return give_processes("nvmlDeviceGetComputeRunningProcesses_v3", device, count, list,
                        ProcessKind::compute);
}
NVML_API Return nvmlDeviceGetComputeRunningProcesses_v2(nvml::Device device, std::uint32_t* count,
                                                        nvml::ProcessInfo* list) {
  return nvmlDeviceGetComputeRunningProcesses_v3(device, count, list);
}
NVML_API Return nvmlDeviceGetGraphicsRunningProcesses_v3(nvml::Device device, std::uint32_t* count,
                                                         nvml::ProcessInfo* list) {
  return give_processes("nvmlDeviceGetGraphicsRunningProcesses_v3", device, count, list,
                        ProcessKind::graphics);
}
NVML_API Return nvmlDeviceGetMPSComputeRunningProcesses_v3(nvml::Device device,
                                                           std::uint32_t* count,
                                                           nvml::ProcessInfo* list) {
  return give_processes("nvmlDeviceGetMPSComputeRunningProcesses_v3", device, count, list,
                        ProcessKind::mps);
}

NVML_API Return nvmlGpmQueryDeviceSupport(nvml::Device device, nvml::GpmSupport* support) {
  return on_device("nvmlGpmQueryDeviceSupport", device, support, [&](State&, const Target& target) {
    if (support->version != nvml::kGpmVersion) return Return::argument_version_mismatch;
    support->supported = model_of(*target.gpu).architecture >= Architecture::hopper ? 1 : 0;
    return Return::success;
  });
}

NVML_API Return nvmlGpmSampleAlloc(nvml::GpmSample* sample) {
  const Entry entry("nvmlGpmSampleAlloc");
  if (!entry.ok()) return entry.refused();
  *sample = reinterpret_cast<nvml::GpmSample>(new Measurement);
  return Return::success;
}

NVML_API Return nvmlGpmSampleFree(nvml::GpmSample sample) {
  delete measurement_of(sample);
  return Return::success;
}

NVML_API Return nvmlGpmSampleGet(nvml::Device device, nvml::GpmSample sample) {
  return on_gpu("nvmlGpmSampleGet", device, sample, [&](State&, const GpuState& gpu) {
    if (model_of(gpu).architecture < Architecture::hopper) return Return::not_supported;
    *measurement_of(sample) = {true, gpu_of(device), kNone, static_cast<double>(gpu.utilization)};
    return Return::success;
  });
}

NVML_API Return nvmlGpmMigSampleGet(nvml::Device device, std::uint32_t instance,
                                    nvml::GpmSample sample) {
  return on_gpu("nvmlGpmMigSampleGet", device, sample, [&](State&, GpuState& gpu) {
    if (model_of(gpu).architecture < Architecture::hopper) return Return::not_supported;
    const InstanceState* found = find_instance(gpu, instance);
    if (found == nullptr) return Return::not_found;
    *measurement_of(sample) = {true, gpu_of(device), instance,
                               static_cast<double>(found->utilization)};
    return Return::success;
  });
}

NVML_API Return nvmlGpmMetricsGet(nvml::GpmMetrics* metrics) {
  const Entry entry("nvmlGpmMetricsGet");
  if (!entry.ok()) return entry.refused();
  if (metrics->version != nvml::kGpmVersion) return Return::argument_version_mismatch;
  const Measurement& first = *measurement_of(metrics->first);
  const Measurement& second = *measurement_of(metrics->second);
  if (!first.taken || !second.taken || first.gpu != second.gpu || first.instance != second.instance)
    return Return::invalid_argument;
  for (std::uint32_t i = 0; i < metrics->count; ++i) {
    nvml::GpmMetric& metric = metrics->metrics[i];
    const bool known = metric.id == nvml::kGpmGraphicsUtilization;
    metric.result = known ? Return::success : Return::not_supported;
    metric.value = known ? (first.utilization + second.utilization) / 2 : 0;
  }
  return Return::success;
}
