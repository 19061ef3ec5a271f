// Exported functions about the system and about the properties of GPUs.
#include <algorithm>
#include <cstdio>

#include "tests/nvml/library.h"

using namespace gantry::fake;  // NOLINT: these are C functions
namespace nvml = gantry::gpu::nvml;

namespace {

void give_pci(const GpuState& gpu, nvml::PciInfo& out) {
  out = {};
  out.domain = gpu.pci_domain;
  out.bus = gpu.pci_bus;
  out.device = gpu.pci_slot;
  out.device_id = model_of(gpu).pci_device;
  std::snprintf(out.bus_id_legacy, sizeof out.bus_id_legacy, "%04X:%02X:%02X.0",
                out.domain & 0xFFFF, out.bus & 0xFF, out.device & 0xFF);
  std::snprintf(out.bus_id, sizeof out.bus_id, "%08X:%02X:%02X.0", out.domain, out.bus & 0xFF,
                out.device & 0xFF);
}

// Returns the GPU at the other end of a link in a mesh: links go in turn to the other GPUs of the
// entry.
std::uint32_t peer_of(const State& state, const GpuState& gpu, std::uint32_t link) {
  const auto self = static_cast<std::uint32_t>(&gpu - state.gpus);
  const std::uint32_t others = gpu.group_size - 1;
  if (others == 0) return kNone;
  return gpu.group_first + (self - gpu.group_first + 1 + link % others) % gpu.group_size;
}

Return check_link(const GpuState& gpu, std::uint32_t link) {
  if (model_of(gpu).links == 0) return Return::not_supported;
  if (link >= model_of(gpu).links) return Return::invalid_argument;
  return Return::success;
}

bool is_up(const GpuState& gpu, std::uint32_t link) {
  return link < model_of(gpu).links - std::min(gpu.links_down, model_of(gpu).links) &&
         (gpu.switched != 0 || gpu.group_size > 1);
}

}  // namespace

NVML_API Return nvmlSystemGetDriverVersion(char* buffer, std::uint32_t length) {
  const Entry entry("nvmlSystemGetDriverVersion");
  return entry.ok() ? give_text(entry.state().driver, buffer, length) : entry.refused();
}

NVML_API Return nvmlSystemGetCudaDriverVersion_v2(std::int32_t* version) {
  const Entry entry("nvmlSystemGetCudaDriverVersion_v2");
  if (!entry.ok()) return entry.refused();
  *version = entry.state().cuda;
  return Return::success;
}
NVML_API Return nvmlSystemGetCudaDriverVersion(std::int32_t* version) {
  return nvmlSystemGetCudaDriverVersion_v2(version);
}

NVML_API Return nvmlDeviceGetCount_v2(std::uint32_t* count) {
  const Entry entry("nvmlDeviceGetCount_v2");
  if (!entry.ok()) return entry.refused();
  *count = entry.state().gpu_count;
  return Return::success;
}
NVML_API Return nvmlDeviceGetCount(std::uint32_t* count) {
  return nvmlDeviceGetCount_v2(count);
}

NVML_API Return nvmlDeviceGetHandleByIndex_v2(std::uint32_t index, nvml::Device* device) {
  const Entry entry("nvmlDeviceGetHandleByIndex_v2", index);
  if (!entry.ok()) return entry.refused();
  if (device == nullptr || index >= entry.state().gpu_count) return Return::invalid_argument;
  if (entry.state().gpus[index].lost != 0) return Return::gpu_is_lost;
  *device = encode<nvml::Device>({HandleKind::gpu, index, 0, 0, 0});
  return Return::success;
}
NVML_API Return nvmlDeviceGetHandleByIndex(std::uint32_t index, nvml::Device* device) {
  return nvmlDeviceGetHandleByIndex_v2(index, device);
}

NVML_API Return nvmlDeviceGetUUID(nvml::Device device, char* buffer, std::uint32_t length) {
  return on_device("nvmlDeviceGetUUID", device, buffer, [&](State&, const Target& target) {
    return give_text(target.compute != nullptr ? target.compute->uuid : target.gpu->uuid, buffer,
                     length);
  });
}

NVML_API Return nvmlDeviceGetName(nvml::Device device, char* buffer, std::uint32_t length) {
  return on_device("nvmlDeviceGetName", device, buffer, [&](State&, const Target& target) {
    std::string name(model_of(*target.gpu).name);
    if (target.instance != nullptr)
      name.append(" MIG ").append(profile_of(*target.gpu, *target.instance).name);
    return give_text(name, buffer, length);
  });
}

NVML_API Return nvmlDeviceGetMinorNumber(nvml::Device device, std::uint32_t* minor) {
  return on_gpu("nvmlDeviceGetMinorNumber", device, minor, [&](State&, const GpuState& gpu) {
    *minor = gpu.minor;
    return Return::success;
  });
}

NVML_API Return nvmlDeviceGetPciInfo_v3(nvml::Device device, nvml::PciInfo* pci) {
  return on_gpu("nvmlDeviceGetPciInfo_v3", device, pci, [&](State&, const GpuState& gpu) {
    give_pci(gpu, *pci);
    return Return::success;
  });
}
NVML_API Return nvmlDeviceGetPciInfo_v2(nvml::Device device, nvml::PciInfo* pci) {
  return nvmlDeviceGetPciInfo_v3(device, pci);
}

NVML_API Return nvmlDeviceGetMemoryAffinity(nvml::Device device, std::uint32_t size,
                                            unsigned long* nodes, std::uint32_t) {
  return on_gpu("nvmlDeviceGetMemoryAffinity", device, nodes, [&](State&, const GpuState& gpu) {
    std::fill(nodes, nodes + size, 0ul);
    if (gpu.numa >= 0 && static_cast<std::uint32_t>(gpu.numa) < size * 64)
      nodes[gpu.numa / 64] = 1ul << gpu.numa % 64;
    return Return::success;
  });
}

NVML_API Return nvmlDeviceGetNvLinkState(nvml::Device device, std::uint32_t link,
                                         std::uint32_t* active) {
  return on_gpu("nvmlDeviceGetNvLinkState", device, active, [&](State&, const GpuState& gpu) {
    if (const Return code = check_link(gpu, link); code != Return::success) return code;
    *active = is_up(gpu, link) ? 1 : 0;
    return Return::success;
  });
}

NVML_API Return nvmlDeviceGetNvLinkRemoteDeviceType(nvml::Device device, std::uint32_t link,
                                                    nvml::LinkEnd* end) {
  return on_gpu("nvmlDeviceGetNvLinkRemoteDeviceType", device, end,
                [&](State&, const GpuState& gpu) {
                  if (const Return code = check_link(gpu, link); code != Return::success)
                    return code;
                  *end = gpu.switched != 0 ? nvml::LinkEnd::nvswitch : nvml::LinkEnd::gpu;
                  return Return::success;
                });
}

NVML_API Return nvmlDeviceGetNvLinkRemotePciInfo_v2(nvml::Device device, std::uint32_t link,
                                                    nvml::PciInfo* pci) {
  return on_gpu("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, pci,
                [&](State& state, const GpuState& gpu) {
                  if (const Return code = check_link(gpu, link); code != Return::success)
                    return code;
                  if (!is_up(gpu, link)) return Return::not_supported;
                  *pci = {};
                  if (gpu.switched == 0)
                    give_pci(state.gpus[peer_of(state, gpu, link)], *pci);
                  else
                    pci->bus = 0xC0 + link / 6;  // the bus of one of the board's switches
                  return Return::success;
                });
}
NVML_API Return nvmlDeviceGetNvLinkRemotePciInfo(nvml::Device device, std::uint32_t link,
                                                 nvml::PciInfo* pci) {
  return nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link, pci);
}
