// The part of NVML's binary interface that Gantry uses, declared here, because the driver's header
// is not part of this repository. Layouts are those of libnvidia-ml.so.1 on x86-64 and are
// asserted; names follow NVIDIA's without their prefix. Facts are from NVIDIA's NVML API guide.
#pragma once

#include <cstdint>
#include <string_view>

namespace gantry::gpu::nvml {

using Device = struct DeviceHandle*;  // a GPU, or a MIG device (a slice)
using GpuInstance = struct GpuInstanceHandle*;
using ComputeInstance = struct ComputeInstanceHandle*;
using EventSet = struct EventSetHandle*;
using GpmSample = struct GpmSampleHandle*;

// The return codes of all calls.
enum class Return : std::int32_t {
  success = 0,
  uninitialized = 1,
  invalid_argument = 2,
  not_supported = 3,
  no_permission = 4,
  not_found = 6,
  insufficient_size = 7,
  driver_not_loaded = 9,
  timeout = 10,
  library_not_found = 12,
  function_not_found = 13,
  gpu_is_lost = 15,
  reset_required = 16,
  operating_system = 17,
  version_mismatch = 18,  // library and kernel module have different versions
  in_use = 19,
  memory = 20,
  insufficient_resources = 23,
  argument_version_mismatch = 25,
  not_ready = 27,
  gpu_not_found = 28,
  unknown = 999,
};
std::string_view text_of(Return code);  // a clause, "the GPU has fallen off the bus"

// The version field of a versioned struct.
template <class T>
constexpr std::uint32_t version_of(std::uint32_t n) {
  return static_cast<std::uint32_t>(sizeof(T)) | n << 24;
}

inline constexpr std::uint32_t kUuidBytes = 96;
inline constexpr std::uint32_t kNameBytes = 96;
inline constexpr std::uint32_t kNoInstance = 0xFFFFFFFF;  // value in an event about the whole GPU
inline constexpr std::uint32_t kMostGpuInstanceProfiles =
    24;  // largest number of indexes that are tried
inline constexpr std::uint32_t kMostComputeInstanceProfiles = 8;  // likewise for compute instances
inline constexpr std::uint32_t kMostNvLinks = 18;

struct PciInfo {
  char bus_id_legacy[16];
  std::uint32_t domain, bus, device;
  std::uint32_t device_id, subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68);

struct Memory {
  std::uint64_t total, free, used;
};
static_assert(sizeof(Memory) == 24);

struct MemoryV2 {
  std::uint32_t version;
  std::uint64_t total, reserved, free, used;
};
static_assert(version_of<MemoryV2>(2) == 0x02000028);

struct Utilization {  // percent of the last sampling period
  std::uint32_t gpu, memory;
};
static_assert(sizeof(Utilization) == 8);

struct ProcessInfo {
  std::uint32_t pid;
  std::uint64_t used_memory;  // ~0 = not known
  std::uint32_t gpu_instance, compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24);

struct Placement {  // place of a GPU instance, in memory slices
  std::uint32_t start, size;
};
static_assert(sizeof(Placement) == 8);

struct GpuInstanceProfile {
  std::uint32_t id, p2p, slices, instances, multiprocessors, copy_engines, decoders, encoders, jpeg,
      ofa;
  std::uint64_t memory_mib;
};
static_assert(sizeof(GpuInstanceProfile) == 48);

struct GpuInstanceProfileV2 {
  std::uint32_t version, id, p2p, slices, instances, multiprocessors, copy_engines, decoders,
      encoders, jpeg, ofa;
  std::uint64_t memory_mib;
  char name[kNameBytes];
};
static_assert(version_of<GpuInstanceProfileV2>(2) == 0x02000098);

struct GpuInstanceInfo {
  Device device;
  std::uint32_t id, profile;
  Placement placement;
};
static_assert(sizeof(GpuInstanceInfo) == 24);

struct ComputeInstanceProfile {
  std::uint32_t id, slices, instances, multiprocessors, copy_engines, decoders, encoders, jpeg, ofa;
};
static_assert(sizeof(ComputeInstanceProfile) == 36);

struct ComputeInstanceInfo {
  Device device;
  GpuInstance gpu_instance;
  std::uint32_t id, profile;
  Placement placement;  // in compute slices of the GPU instance
};
static_assert(sizeof(ComputeInstanceInfo) == 32);

// Events. For an Xid event, `data` is the number of the Xid.
inline constexpr std::uint64_t kEventDoubleBitEcc = 2, kEventXid = 8, kEventUnavailable = 0x4000,
                               kEventRecoveryAction = 0x8000;

struct EventData {
  Device device;
  std::uint64_t type, data;
  std::uint32_t gpu_instance, compute_instance;  // kNoInstance: the event is about the whole GPU
};
static_assert(sizeof(EventData) == 32);

// Fields. Values of kFieldRecoveryAction: 0 none, 1 reset, 2 reboot, 3 drain peers, 4 drain and
// reset.
inline constexpr std::uint32_t kFieldRecoveryAction = 230;

struct FieldValue {
  std::uint32_t field, scope;
  std::int64_t timestamp_us, latency_us;
  // Type of the value: 0 double, 1 unsigned, 2 unsigned long, 3 unsigned long long.
  std::uint32_t type;
  Return result;
  union {
    double real;
    std::uint32_t u32;
    std::uint64_t u64;
  } value;
};
static_assert(sizeof(FieldValue) == 40);

enum class LinkEnd : std::uint32_t { gpu = 0, npu = 1, nvswitch = 2, unknown = 255 };

// Reasons why clocks are lower than requested: bits of GetCurrentClocksEventReasons.
inline constexpr std::uint64_t kClocksHwSlowdown = 0x8, kClocksSwThermal = 0x20,
                               kClocksHwThermal = 0x40, kClocksPowerBrake = 0x80;

enum class EccKind : std::uint32_t { corrected = 0, uncorrected = 1 };
enum class EccSince : std::uint32_t { reset = 0, ever = 1 };
enum class RetiredFor : std::uint32_t { single_bit_errors = 0, double_bit_error = 1 };
enum class TemperatureLimit : std::uint32_t { shutdown = 0, slowdown = 1 };

// GPM: counters since the previous sample. From Hopper on, the only source of a MIG slice's
// utilisation.
inline constexpr std::uint32_t kGpmVersion = 1, kGpmGraphicsUtilization = 1;

struct GpmSupport {
  std::uint32_t version, supported;
};
static_assert(sizeof(GpmSupport) == 8);

struct GpmMetric {
  std::uint32_t id;
  Return result;
  double value;
  const char *short_name, *long_name, *unit;
};
static_assert(sizeof(GpmMetric) == 40);

// NVIDIA's array has grown beyond 98 entries in newer drivers; the library reads `count` entries.
struct GpmMetrics {
  std::uint32_t version, count;
  GpmSample first, second;
  GpmMetric metrics[512];
};
static_assert(sizeof(GpmMetrics) == 24 + 512 * 40);

}  // namespace gantry::gpu::nvml
