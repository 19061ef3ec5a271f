#include "noded/gpu/nvml/nvml.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <link.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>

#include "common/quantity.h"

namespace gantry::gpu {

template <class F>
struct Call {
  F* function = nullptr;  // nullptr: this driver has none of the function's names
  const char* name = "";
};

struct Nvml::Calls {
#define X(member, arguments, ...) Call<nvml::Return arguments> member;
#include "noded/gpu/nvml/nvml_calls.def"
#undef X

  template <class F>
  static void find(void* library, Call<F>& call, std::initializer_list<const char*> names) {
    call.name = *names.begin();
    for (const char* name : names) {
      call.function = reinterpret_cast<F*>(::dlsym(library, name));
      if (call.function != nullptr) return;
    }
  }

  void load(void* library) {
#define X(member, arguments, ...) find(library, member, {__VA_ARGS__});
#include "noded/gpu/nvml/nvml_calls.def"
#undef X
  }

  // The first missing function of those without which GPUs cannot be used; nullptr = none is
  // missing.
  [[nodiscard]] const char* missing() const {
    if (init.function == nullptr) return init.name;
    if (shutdown.function == nullptr) return shutdown.name;
    if (device_count.function == nullptr) return device_count.name;
    if (device_by_index.function == nullptr) return device_by_index.name;
    if (uuid.function == nullptr) return uuid.name;
    if (name.function == nullptr) return name.name;
    if (minor.function == nullptr) return minor.name;
    if (pci.function == nullptr) return pci.name;
    if (memory.function == nullptr) return memory.name;
    return nullptr;
  }
};

template <class F, class... In>
Answer<void> call(const Call<F>& call, In... in) {
  if (call.function == nullptr)
    return tl::unexpected(Failure{nvml::Return::function_not_found, call.name});
  const nvml::Return code = call.function(in...);
  if (code != nvml::Return::success) return tl::unexpected(Failure{code, call.name});
  return {};
}

// A call whose last argument is a pointer to the result.
template <class T, class F, class... In>
Answer<T> get(const Call<F>& function, In... in) {
  T out{};
  TRY(call(function, in..., &out));
  return out;
}

// A call whose last arguments are a buffer and its length.
template <std::uint32_t N, class F, class... In>
Answer<std::string> text(const Call<F>& function, In... in) {
  char buffer[N] = {};
  TRY(call(function, in..., buffer, N));
  return std::string(buffer, ::strnlen(buffer, N));
}

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

// Turns "00000000:3B:00.0" into "0000:3b:00.0", the form of the kernel and lspci.
std::string pci_text(const nvml::PciInfo& info) {
  return fmt::format("{:04x}:{:02x}:{:02x}.0", info.domain, info.bus, info.device);
}

constexpr std::uint32_t kMostProcesses = 4096;
// Instances of one profile on one GPU; the largest number so far is 7.
constexpr std::uint32_t kMostInstances = 64;

bool is_absent(Return code) {  // the driver or the GPU lacks it
  return code == Return::not_supported || code == Return::invalid_argument ||
         code == Return::not_found || code == Return::function_not_found;
}

// Reads a list: gets its length first, and again if it has grown meanwhile.
Answer<void> add_processes(
    const Call<Return(nvml::Device, std::uint32_t*, nvml::ProcessInfo*)>& function,
    nvml::Device device, std::vector<nvml::ProcessInfo>& out) {
  for (std::uint32_t room = 0;;) {
    std::vector<nvml::ProcessInfo> list(room);
    std::uint32_t count = room;
    const auto done = call(function, device, &count, room > 0 ? list.data() : nullptr);
    if (done) {
      list.resize(std::min(count, room));
      out.insert(out.end(), list.begin(), list.end());
      return {};
    }
    if (done.error().code != Return::insufficient_size || count > kMostProcesses) return done;
    room = std::max(count + 8, room * 2);
  }
}

// Makes nvidia-smi's profile names for drivers that do not have them: the GPU's memory in GB, times
// the eighths that the profile has (the rule of NVIDIA's go-nvlib).
std::string name_of(std::uint32_t index, const nvml::GpuInstanceProfile& info,
                    std::uint64_t total) {
  constexpr std::uint32_t kOneSliceWithMedia = 7, kTwoSlicesWithMedia = 8;  // profile indexes
  constexpr double kGiB = 1u << 30;
  const bool media = index == kOneSliceWithMedia || index == kTwoSlicesWithMedia;
  const double mine =
      static_cast<double>(bytes_of(Mebibytes{static_cast<std::int64_t>(info.memory_mib)}).value());
  const double eighths =
      std::ceil(8 * mine / static_cast<double>(std::max<std::uint64_t>(1, total)));
  const double gb = std::round(eighths / 8 * std::ceil(static_cast<double>(total) / kGiB));
  return fmt::format("{}g.{:.0f}gb{}", info.slices, gb, media ? "+me" : "");
}

std::string plain_name(const char* text) {  // some drivers return "MIG 1g.10gb"
  std::string_view name(text, ::strnlen(text, nvml::kNameBytes));
  if (name.starts_with("MIG ")) name.remove_prefix(4);
  return std::string(name);
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

// Calls whose last argument is the place for the answer, and nothing else is to be done.
#define PLAIN(T, method, function, parameters, ...)             \
  Answer<T> Nvml::method parameters const {                     \
    return get<T>(calls_->function __VA_OPT__(, ) __VA_ARGS__); \
  }
PLAIN(std::uint32_t, count, device_count, ())
PLAIN(nvml::Device, device, device_by_index, (std::uint32_t index), index)
PLAIN(std::uint32_t, minor_number, minor, (nvml::Device device), device)
PLAIN(nvml::LinkEnd, link_end, link_end, (nvml::Device device, std::uint32_t link), device, link)
PLAIN(nvml::Utilization, utilization, utilization, (nvml::Device device), device)
PLAIN(std::uint32_t, power_mw, power, (nvml::Device device), device)
PLAIN(std::uint32_t, temperature, temperature, (nvml::Device device), device, 0u)
PLAIN(std::uint32_t, temperature_limit, temperature_limit,
      (nvml::Device device, nvml::TemperatureLimit which), device, which)
PLAIN(std::uint64_t, clock_reasons, clock_reasons, (nvml::Device device), device)
PLAIN(std::uint64_t, ecc_errors, ecc_errors,
      (nvml::Device device, nvml::EccKind kind, nvml::EccSince since), device, kind, since)
PLAIN(nvml::EventSet, create_event_set, event_set_create, ())
PLAIN(std::uint64_t, event_types, event_types, (nvml::Device device), device)
PLAIN(nvml::GpmSample, create_sample, gpm_alloc, ())
PLAIN(nvml::GpuInstanceInfo, info, gpu_instance_info, (nvml::GpuInstance instance), instance)
PLAIN(nvml::ComputeInstanceInfo, info, compute_instance_info, (nvml::ComputeInstance instance),
      instance)
PLAIN(nvml::ComputeInstance, create, create_compute_instance,
      (nvml::GpuInstance instance, std::uint32_t profile), instance, profile)
#undef PLAIN

Answer<std::string> Nvml::uuid(nvml::Device device) const {
  return text<nvml::kUuidBytes>(calls_->uuid, device);
}

Answer<std::string> Nvml::name(nvml::Device device) const {
  return text<nvml::kNameBytes>(calls_->name, device);
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

void Nvml::free(nvml::EventSet set) const {
  static_cast<void>(call(calls_->event_set_free, set));  // if it fails, nothing more can be done
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

using nvml::Return;

Answer<std::vector<nvml::ProcessInfo>> Nvml::processes(nvml::Device device) const {
  std::vector<nvml::ProcessInfo> all;
  TRY(add_processes(calls_->compute_processes, device, all));
  for (const auto* kind : {&calls_->mps_processes, &calls_->graphics_processes})
    if (auto done = add_processes(*kind, device, all); !done && !is_absent(done.error().code))
      return tl::unexpected(done.error());
  std::ranges::sort(all, [](auto& a, auto& b) { return a.pid < b.pid; });
  all.erase(std::unique(all.begin(), all.end(), [](auto& a, auto& b) { return a.pid == b.pid; }),
            all.end());
  return all;
}

Answer<MigMode> Nvml::mig_mode(nvml::Device device) const {
  std::uint32_t now = 0, later = 0;
  const auto done = call(calls_->mig_mode, device, &now, &later);
  if (done) return MigMode{now == 1, later == 1};
  if (is_absent(done.error().code)) return MigMode{};
  return tl::unexpected(done.error());
}

Answer<std::vector<Profile>> Nvml::profiles(nvml::Device device) const {
  std::vector<Profile> out;
  for (std::uint32_t index = 0; index < nvml::kMostGpuInstanceProfiles; ++index) {
    nvml::GpuInstanceProfileV2 v2{};
    v2.version = nvml::version_of<nvml::GpuInstanceProfileV2>(2);
    const auto named = call(calls_->profile_v2, device, index, &v2);
    if (named) {
      out.push_back({{v2.id, v2.p2p, v2.slices, v2.instances, v2.multiprocessors, v2.copy_engines,
                      v2.decoders, v2.encoders, v2.jpeg, v2.ofa, v2.memory_mib},
                     plain_name(v2.name)});
    } else {
      const auto plain = get<nvml::GpuInstanceProfile>(calls_->profile, device, index);
      if (!plain && is_absent(plain.error().code)) continue;
      if (!plain) return tl::unexpected(plain.error());
      out.push_back({*plain, ""});
    }
    if (out.back().name.empty())
      out.back().name = name_of(index, out.back().info, memory(device).value_or(MemoryUse{}).total);
  }
  std::ranges::sort(out, [](auto& a, auto& b) { return a.info.id < b.info.id; });
  return out;
}

Answer<std::vector<nvml::Placement>> Nvml::placements(nvml::Device device,
                                                      std::uint32_t profile) const {
  std::uint32_t count = 0;
  TRY(call(calls_->placements, device, profile, nullptr, &count));
  std::vector<nvml::Placement> out(std::min(count, kMostInstances));
  TRY(call(calls_->placements, device, profile, out.data(), &count));
  out.resize(std::min<std::size_t>(count, out.size()));
  std::ranges::sort(out, [](auto& a, auto& b) { return a.start < b.start; });
  return out;
}

// NVML wants room for as many instances as the profile may have, and does not say how many that
// are.
template <class T, class F, class Owner>
Answer<std::vector<T>> instances(const Call<F>& function, Owner owner, std::uint32_t profile) {
  std::vector<T> out(kMostInstances);
  std::uint32_t count = kMostInstances;
  TRY(call(function, owner, profile, out.data(), &count));
  out.resize(std::min(count, kMostInstances));
  return out;
}

Answer<std::vector<nvml::GpuInstance>> Nvml::gpu_instances(nvml::Device device,
                                                           std::uint32_t profile) const {
  return instances<nvml::GpuInstance>(calls_->gpu_instances, device, profile);
}

Answer<nvml::GpuInstance> Nvml::create(nvml::Device device, std::uint32_t profile,
                                       nvml::Placement at) const {
  nvml::GpuInstance out = nullptr;
  TRY(call(calls_->create_gpu_instance, device, profile, &at, &out));
  return out;
}

Answer<void> Nvml::destroy(nvml::GpuInstance instance) const {
  return call(calls_->destroy_gpu_instance, instance);
}

Answer<std::vector<nvml::ComputeInstanceProfile>> Nvml::compute_profiles(
    nvml::GpuInstance instance) const {
  std::vector<nvml::ComputeInstanceProfile> out;
  for (std::uint32_t index = 0; index < nvml::kMostComputeInstanceProfiles; ++index) {
    const auto one =
        get<nvml::ComputeInstanceProfile>(calls_->compute_profile, instance, index, 0u);
    if (one)
      out.push_back(*one);
    else if (!is_absent(one.error().code))
      return tl::unexpected(one.error());
  }
  return out;
}

Answer<std::vector<nvml::ComputeInstance>> Nvml::compute_instances(nvml::GpuInstance instance,
                                                                   std::uint32_t profile) const {
  return instances<nvml::ComputeInstance>(calls_->compute_instances, instance, profile);
}

Answer<void> Nvml::destroy(nvml::ComputeInstance instance) const {
  return call(calls_->destroy_compute_instance, instance);
}

Answer<std::vector<Nvml::MigDevice>> Nvml::mig_devices(nvml::Device device) const {
  std::vector<MigDevice> out;
  const auto most = get<std::uint32_t>(calls_->mig_most, device);
  if (!most && is_absent(most.error().code)) return out;
  if (!most) return tl::unexpected(most.error());
  for (std::uint32_t index = 0; index < std::min(*most, kMostInstances); ++index) {
    const auto handle = get<nvml::Device>(calls_->mig_device, device, index);
    if (!handle && is_absent(handle.error().code)) continue;  // a gap in the list, or its end
    if (!handle) return tl::unexpected(handle.error());
    MigDevice one;
    one.device = *handle;
    ASSIGN(gi, get<std::uint32_t>(calls_->mig_gpu_instance, *handle));
    ASSIGN(ci, get<std::uint32_t>(calls_->mig_compute_instance, *handle));
    ASSIGN(name, uuid(*handle));
    one.gpu_instance = *gi;
    one.compute_instance = *ci;
    one.uuid = std::move(*name);
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace gantry::gpu
