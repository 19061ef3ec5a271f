// NVIDIA's management library, loaded at run time. This is the only place that calls it. Nothing is
// linked and no header of NVIDIA's is used; on a machine without a driver the caller gets an error
// in one sentence.
//
// If a driver lacks a function under its name, older names of it are tried (nvml_calls.def); a call
// that the driver does not have returns function_not_found. Calls may come from several threads.
// Every answer is checked against the sizes that NVML promises, and no text is assumed to end with
// a zero byte.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "noded/gpu/nvml/nvml_types.h"

namespace gantry::gpu {

// Why a call failed. `call` is the function's name.
struct Failure {
  nvml::Return code = nvml::Return::unknown;
  const char* call = "";
};
template <class T>
using Answer = tl::expected<T, Failure>;

std::string to_string(const Failure& failure);  // "nvmlDeviceGetUUID: the GPU has fallen off ..."
// Makes an error about `what`, for example "GPU 3 (0000:3b:00.0)".
tl::unexpected<Error> fail_nvml(std::string_view what, const Failure& failure);

struct MemoryUse {  // bytes; `used` excludes what the driver keeps for itself
  std::uint64_t total = 0, used = 0;
};
struct RemappedRows {
  std::uint32_t correctable = 0, uncorrectable = 0;
  bool pending = false;  // rows will be remapped at the next reset
  bool failed = false;   // a remapping failed: no spare row was left
};
struct MigMode {
  bool now = false, after_reset = false;
};
struct Profile {  // a profile of GPU instances
  nvml::GpuInstanceProfile info;
  std::string name;  // "1g.10gb"
};

class Nvml {
 public:
  // `library` is a path, or "libnvidia-ml.so.1" to let the loader search. The error is one clause.
  static Result<std::unique_ptr<Nvml>> open(const std::string& library);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // The path from which the library was loaded; "" if it is not known.
  [[nodiscard]] std::string file() const;
  [[nodiscard]] Answer<std::string> driver_version() const;
  [[nodiscard]] Answer<std::string> cuda_version() const;  // "12.4"

  // ---- GPUs
  [[nodiscard]] Answer<std::uint32_t> count() const;
  [[nodiscard]] Answer<nvml::Device> device(
      std::uint32_t index) const;  // by NVML's index, which is not GpuDevice::index
  [[nodiscard]] Answer<std::string> uuid(nvml::Device) const;  // also for slices
  [[nodiscard]] Answer<std::string> name(nvml::Device) const;
  [[nodiscard]] Answer<std::uint32_t> minor_number(nvml::Device) const;
  [[nodiscard]] Answer<std::string> pci(nvml::Device) const;  // "0000:3b:00.0"
  [[nodiscard]] Answer<std::int32_t> numa(nvml::Device) const;
  [[nodiscard]] Answer<bool> link_active(nvml::Device, std::uint32_t link) const;
  [[nodiscard]] Answer<nvml::LinkEnd> link_end(nvml::Device, std::uint32_t link) const;
  [[nodiscard]] Answer<std::string> link_pci(nvml::Device, std::uint32_t link) const;

  // ---- state; memory and processes also of slices
  [[nodiscard]] Answer<MemoryUse> memory(nvml::Device) const;
  // The driver does not report utilisation in MIG mode.
  [[nodiscard]] Answer<nvml::Utilization> utilization(nvml::Device) const;
  [[nodiscard]] Answer<std::uint32_t> power_mw(nvml::Device) const;
  [[nodiscard]] Answer<std::uint32_t> temperature(nvml::Device) const;  // Celsius
  [[nodiscard]] Answer<std::uint32_t> temperature_limit(nvml::Device, nvml::TemperatureLimit) const;
  [[nodiscard]] Answer<std::uint64_t> clock_reasons(nvml::Device) const;
  [[nodiscard]] Answer<std::uint64_t> ecc_errors(nvml::Device, nvml::EccKind, nvml::EccSince) const;
  [[nodiscard]] Answer<std::uint32_t> retired_pages(nvml::Device, nvml::RetiredFor) const;
  [[nodiscard]] Answer<bool> retirement_pending(nvml::Device) const;
  [[nodiscard]] Answer<RemappedRows> remapped_rows(nvml::Device) const;
  [[nodiscard]] Answer<std::uint32_t> recovery_action(nvml::Device) const;
  // Compute, MPS and graphics processes; each pid once, ascending.
  [[nodiscard]] Answer<std::vector<nvml::ProcessInfo>> processes(nvml::Device) const;

  // ---- MIG
  [[nodiscard]] Answer<MigMode> mig_mode(nvml::Device) const;
  // Ascending by id. Empty if this GPU cannot be partitioned.
  [[nodiscard]] Answer<std::vector<Profile>> profiles(nvml::Device) const;
  [[nodiscard]] Answer<std::vector<nvml::Placement>> placements(nvml::Device,
                                                                std::uint32_t profile) const;
  [[nodiscard]] Answer<std::vector<nvml::GpuInstance>> gpu_instances(nvml::Device,
                                                                     std::uint32_t profile) const;
  [[nodiscard]] Answer<nvml::GpuInstanceInfo> info(nvml::GpuInstance) const;
  [[nodiscard]] Answer<nvml::GpuInstance> create(nvml::Device, std::uint32_t profile,
                                                 nvml::Placement at) const;
  [[nodiscard]] Answer<void> destroy(nvml::GpuInstance) const;
  // The profiles that a GPU instance may have, without those that share engines.
  [[nodiscard]] Answer<std::vector<nvml::ComputeInstanceProfile>> compute_profiles(
      nvml::GpuInstance) const;
  [[nodiscard]] Answer<std::vector<nvml::ComputeInstance>> compute_instances(
      nvml::GpuInstance, std::uint32_t profile) const;
  [[nodiscard]] Answer<nvml::ComputeInstanceInfo> info(nvml::ComputeInstance) const;
  [[nodiscard]] Answer<nvml::ComputeInstance> create(nvml::GpuInstance,
                                                     std::uint32_t profile) const;
  [[nodiscard]] Answer<void> destroy(nvml::ComputeInstance) const;
  struct MigDevice {  // a compute instance, as CUDA programs see it
    nvml::Device device = nullptr;
    std::uint32_t gpu_instance = 0, compute_instance = 0;
    std::string uuid;
  };
  [[nodiscard]] Answer<std::vector<MigDevice>> mig_devices(nvml::Device) const;

  // ---- events
  [[nodiscard]] Answer<nvml::EventSet> create_event_set() const;
  void free(nvml::EventSet) const;
  [[nodiscard]] Answer<std::uint64_t> event_types(nvml::Device) const;
  [[nodiscard]] Answer<void> register_events(nvml::Device, std::uint64_t types,
                                             nvml::EventSet) const;
  // Returns nullopt if no event came within `timeout_ms`.
  [[nodiscard]] Answer<std::optional<nvml::EventData>> wait(nvml::EventSet,
                                                            std::uint32_t timeout_ms) const;

  // ---- GPM
  [[nodiscard]] bool has_gpm(nvml::Device) const;
  [[nodiscard]] Answer<nvml::GpmSample> create_sample() const;
  void free(nvml::GpmSample) const;
  [[nodiscard]] Answer<void> take(nvml::Device, nvml::GpmSample) const;
  [[nodiscard]] Answer<void> take(nvml::Device, std::uint32_t gpu_instance, nvml::GpmSample) const;
  // The percentage of the time from `first` to `second` in which the graphics engine was busy.
  [[nodiscard]] Answer<double> busy(nvml::GpmSample first, nvml::GpmSample second) const;

 private:
  struct Calls;
  explicit Nvml(void* library);
  void* library_;
  bool initialised_ = false;
  std::unique_ptr<Calls> calls_;
};

}  // namespace gantry::gpu
