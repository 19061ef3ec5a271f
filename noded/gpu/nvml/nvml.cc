#include "noded/gpu/nvml/nvml.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <link.h>

#include "noded/gpu/nvml/nvml_load.h"

namespace gantry::gpu {

using nvml::Return;

namespace {

Result<void> check_opened(Return code, const std::string& library) {
  switch (code) {
    case Return::success: return {};
    case Return::driver_not_loaded:
      return fail(ErrorCode::unavailable, "the NVIDIA driver is not loaded");
    case Return::version_mismatch:
      return fail(ErrorCode::version_mismatch,
                  fmt::format("{} and the kernel's NVIDIA driver are of different versions: reload "
                              "the driver or restart the node",
                              library));
    case Return::no_permission:
      return fail(ErrorCode::permission_denied, "the NVIDIA driver's device files may not be used");
    default:
      return fail(ErrorCode::unavailable, fmt::format("{}: {}", library, nvml::text_of(code)));
  }
}

ErrorCode code_of(Return code) {
  switch (code) {
    case Return::in_use: return ErrorCode::wrong_state;
    case Return::no_permission: return ErrorCode::permission_denied;
    case Return::not_supported:
    case Return::function_not_found: return ErrorCode::unsupported;
    default: return ErrorCode::io_error;
  }
}

// Writes "00000000:3B:00.0" as "0000:3b:00.0", as the kernel and lspci do.
std::string pci_text(const nvml::PciInfo& info) {
  return fmt::format("{:04x}:{:02x}:{:02x}.0", info.domain, info.bus, info.device);
}

}  // namespace

std::string to_string(const Failure& failure) {
  return fmt::format("{}: {}", failure.call, nvml::text_of(failure.code));
}

tl::unexpected<Error> fail_nvml(std::string_view what, const Failure& failure) {
  return fail(code_of(failure.code), fmt::format("{}: {}", what, to_string(failure)));
}

Nvml::Nvml(void* library) : library_(library), calls_(std::make_unique<Calls>()) {}

Nvml::~Nvml() {
  if (initialised_) calls_->shutdown.function();
  ::dlclose(library_);
}

Result<std::unique_ptr<Nvml>> Nvml::open(const std::string& library) {
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = ::dlerror();
    const std::string_view text = why != nullptr ? why : "";
    if (text.find("No such file") != std::string_view::npos)
      return fail(ErrorCode::not_found, library + " not found");
    return fail(ErrorCode::unavailable, fmt::format("{} cannot be loaded: {}", library, text));
  }
  std::unique_ptr<Nvml> out(new Nvml(handle));
  out->calls_->load(handle);
  if (const char* missing = out->calls_->missing())
    return fail(ErrorCode::unsupported, fmt::format("{} has no {}", library, missing));
  TRY(check_opened(out->calls_->init.function(), library));
  out->initialised_ = true;
  return out;
}

std::string Nvml::file() const {
  const ::link_map* map = nullptr;
  if (::dlinfo(library_, RTLD_DI_LINKMAP, static_cast<void*>(&map)) != 0 || map == nullptr)
    return {};
  return map->l_name != nullptr ? map->l_name : "";
}

Answer<std::string> Nvml::driver_version() const {
  return text<80>(calls_->driver_version);
}

Answer<std::string> Nvml::cuda_version() const {
  return get<std::int32_t>(calls_->cuda_version).map([](std::int32_t v) {
    return fmt::format("{}.{}", v / 1000, v % 1000 / 10);
  });
}

Answer<std::uint32_t> Nvml::count() const {
  return get<std::uint32_t>(calls_->device_count);
}

Answer<nvml::Device> Nvml::device(std::uint32_t index) const {
  return get<nvml::Device>(calls_->device_by_index, index);
}

Answer<std::string> Nvml::uuid(nvml::Device device) const {
  return text<nvml::kUuidBytes>(calls_->uuid, device);
}

Answer<std::string> Nvml::name(nvml::Device device) const {
  return text<nvml::kNameBytes>(calls_->name, device);
}

Answer<std::uint32_t> Nvml::minor(nvml::Device device) const {
  return get<std::uint32_t>(calls_->minor, device);
}

Answer<std::string> Nvml::pci(nvml::Device device) const {
  return get<nvml::PciInfo>(calls_->pci, device).map(pci_text);
}

Answer<std::int32_t> Nvml::numa(nvml::Device device) const {
  unsigned long nodes[4] = {};
  TRY(call(calls_->memory_affinity, device, 4u, nodes, 0u));
  for (int i = 0; i < 4; ++i)
    if (nodes[i] != 0) return i * 64 + __builtin_ctzl(nodes[i]);
  return -1;
}

Answer<bool> Nvml::link_active(nvml::Device device, std::uint32_t link) const {
  return get<std::uint32_t>(calls_->link_active, device, link).map([](auto v) { return v == 1; });
}

Answer<nvml::LinkEnd> Nvml::link_end(nvml::Device device, std::uint32_t link) const {
  return get<nvml::LinkEnd>(calls_->link_end, device, link);
}

Answer<std::string> Nvml::link_pci(nvml::Device device, std::uint32_t link) const {
  return get<nvml::PciInfo>(calls_->link_pci, device, link).map(pci_text);
}

Answer<MemoryUse> Nvml::memory(nvml::Device device) const {
  nvml::MemoryV2 v2{};
  v2.version = nvml::version_of<nvml::MemoryV2>(2);
  const auto done = call(calls_->memory_v2, device, &v2);
  if (done) return MemoryUse{v2.total, v2.used};
  if (done.error().code == Return::gpu_is_lost) return tl::unexpected(done.error());
  return get<nvml::Memory>(calls_->memory, device).map([](const nvml::Memory& m) {
    return MemoryUse{m.total, m.used};
  });
}

Answer<nvml::Utilization> Nvml::utilization(nvml::Device device) const {
  return get<nvml::Utilization>(calls_->utilization, device);
}

Answer<std::uint32_t> Nvml::power_mw(nvml::Device device) const {
  return get<std::uint32_t>(calls_->power, device);
}

Answer<std::uint32_t> Nvml::temperature(nvml::Device device) const {
  return get<std::uint32_t>(calls_->temperature, device, 0u);
}

Answer<std::uint32_t> Nvml::temperature_limit(nvml::Device device,
                                              nvml::TemperatureLimit which) const {
  return get<std::uint32_t>(calls_->temperature_limit, device, which);
}

Answer<std::uint64_t> Nvml::clock_reasons(nvml::Device device) const {
  return get<std::uint64_t>(calls_->clock_reasons, device);
}

Answer<std::uint64_t> Nvml::ecc_errors(nvml::Device device, nvml::EccKind kind,
                                       nvml::EccSince since) const {
  return get<std::uint64_t>(calls_->ecc_errors, device, kind, since);
}

Answer<std::uint32_t> Nvml::retired_pages(nvml::Device device, nvml::RetiredFor why) const {
  std::uint32_t count = 0;
  const auto done = call(calls_->retired_pages, device, why, &count, nullptr, nullptr);
  if (!done && done.error().code != Return::insufficient_size) return tl::unexpected(done.error());
  return count;
}

Answer<bool> Nvml::retirement_pending(nvml::Device device) const {
  return get<std::uint32_t>(calls_->retired_pending, device).map([](auto v) { return v == 1; });
}

Answer<RemappedRows> Nvml::remapped_rows(nvml::Device device) const {
  RemappedRows rows;
  std::uint32_t pending = 0, failed = 0;
  TRY(call(calls_->remapped_rows, device, &rows.correctable, &rows.uncorrectable, &pending,
           &failed));
  rows.pending = pending != 0;
  rows.failed = failed != 0;
  return rows;
}

Answer<std::uint32_t> Nvml::recovery_action(nvml::Device device) const {
  nvml::FieldValue value{};
  value.field = nvml::kFieldRecoveryAction;
  TRY(call(calls_->field_values, device, 1, &value));
  if (value.result != Return::success)
    return tl::unexpected(Failure{value.result, calls_->field_values.name});
  return value.type == 1 ? value.value.u32 : static_cast<std::uint32_t>(value.value.u64);
}

Answer<nvml::EventSet> Nvml::create_event_set() const {
  return get<nvml::EventSet>(calls_->event_set_create);
}

void Nvml::free(nvml::EventSet set) const {
  static_cast<void>(call(calls_->event_set_free, set));  // if it fails, nothing more can be done
}

Answer<std::uint64_t> Nvml::event_types(nvml::Device device) const {
  return get<std::uint64_t>(calls_->event_types, device);
}

Answer<void> Nvml::register_events(nvml::Device device, std::uint64_t types,
                                   nvml::EventSet set) const {
  return call(calls_->event_register, device, types, set);
}

Answer<std::optional<nvml::EventData>> Nvml::wait(nvml::EventSet set,
                                                  std::uint32_t timeout_ms) const {
  nvml::EventData data{};
  data.gpu_instance = data.compute_instance = nvml::kNoInstance;  // older drivers do not set them
  const auto done = call(calls_->event_wait, set, &data, timeout_ms);
  if (done) return data;
  if (done.error().code == Return::timeout) return std::nullopt;
  return tl::unexpected(done.error());
}

bool Nvml::has_gpm(nvml::Device device) const {
  nvml::GpmSupport support{nvml::kGpmVersion, 0};
  return call(calls_->gpm_support, device, &support).has_value() && support.supported != 0;
}

Answer<nvml::GpmSample> Nvml::create_sample() const {
  return get<nvml::GpmSample>(calls_->gpm_alloc);
}

void Nvml::free(nvml::GpmSample sample) const {
  static_cast<void>(call(calls_->gpm_free, sample));
}

Answer<void> Nvml::take(nvml::Device device, nvml::GpmSample sample) const {
  return call(calls_->gpm_sample, device, sample);
}

Answer<void> Nvml::take(nvml::Device device, std::uint32_t gpu_instance,
                        nvml::GpmSample sample) const {
  return call(calls_->gpm_slice_sample, device, gpu_instance, sample);
}

Answer<double> Nvml::busy(nvml::GpmSample first, nvml::GpmSample second) const {
  const auto metrics = std::make_unique<nvml::GpmMetrics>();
  metrics->version = nvml::kGpmVersion;
  metrics->count = 1;
  metrics->first = first;
  metrics->second = second;
  metrics->metrics[0].id = nvml::kGpmGraphicsUtilization;
  TRY(call(calls_->gpm_metrics, metrics.get()));
  if (metrics->metrics[0].result != Return::success)
    return tl::unexpected(Failure{metrics->metrics[0].result, calls_->gpm_metrics.name});
  return metrics->metrics[0].value;
}

}  // namespace gantry::gpu
