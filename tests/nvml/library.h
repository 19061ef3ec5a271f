// Declares what all exported functions share: the session of this process, handles, and the entry
// into a call (lock, faults on command, a crash on command).
#pragma once

#include <optional>

#include "noded/gpu/nvml/nvml_types.h"
#include "tests/nvml/rules.h"
#include "tests/nvml/state.h"

#define NVML_API extern "C" __attribute__((visibility("default")))

namespace gantry::fake {

namespace nvml = gpu::nvml;

// Returns the mapped state; nullptr before nvmlInit and after the last nvmlShutdown.
State* session();

// The entry into one call of the given name. `refused` is set if a fault demands an error or the
// library is not initialised; otherwise the lock is held until the end of the scope.
class Entry {
 public:
  explicit Entry(const char* call, std::uint32_t gpu = kNone);
  [[nodiscard]] bool ok() const { return refused_ == Return::success; }
  [[nodiscard]] Return refused() const { return refused_; }
  State& state() const { return *state_; }

 private:
  State* state_;
  Return refused_ = Return::success;
  std::optional<Lock> lock_;
};

// A device handle is a number that names a GPU, or one compute instance of one generation on it.
enum class HandleKind : std::uint64_t { gpu = 0x6A, mig = 0x6B, instance = 0x6C, compute = 0x6D };
struct Handle {
  HandleKind kind;
  std::uint32_t gpu, instance, compute, generation;
};
template <class T>
T encode(const Handle& h) {
  const std::uint64_t bits =
      static_cast<std::uint64_t>(h.kind) << 56 | static_cast<std::uint64_t>(h.gpu & 0xFFFF) << 40 |
      static_cast<std::uint64_t>(h.instance & 0xFF) << 32 |
      static_cast<std::uint64_t>(h.compute & 0xFF) << 24 | (h.generation & 0xFFFFFF);
  return reinterpret_cast<T>(bits);
}
Handle decode(const void* handle);

// A device: a GPU, or a MIG device together with its GPU. `code` may be invalid_argument or
// gpu_is_lost.
struct Target {
  Return code = Return::success;
  GpuState* gpu = nullptr;
  std::uint32_t gpu_index = 0;
  InstanceState* instance = nullptr;  // set for a MIG device only
  ComputeState* compute = nullptr;
};
Target target_of(State& state, nvml::Device device);
// For a GPU instance or compute instance `code` is not_found when the handle's own instance is
// gone.
Target target_of(State& state, nvml::GpuInstance instance);
Target target_of(State& state, nvml::ComputeInstance compute);
// the GPU's index, for faults; kNone if the handle names none
std::uint32_t gpu_of(const void* handle);

// Runs `body(state, target)` on the device, or returns an error. The answer is written to `out`.
template <class F>
Return on_device(const char* call, nvml::Device device, const void* out, F body) {
  const Entry entry(call, gpu_of(device));
  if (!entry.ok()) return entry.refused();
  if (out == nullptr) return Return::invalid_argument;
  const Target target = target_of(entry.state(), device);
  return target.code == Return::success ? body(entry.state(), target) : target.code;
}

// Runs `body(state, gpu)` for functions that MIG devices do not support.
template <class F>
Return on_gpu(const char* call, nvml::Device device, const void* out, F body) {
  return on_device(call, device, out, [&](State& state, const Target& target) {
    return target.instance != nullptr ? Return::not_supported : body(state, *target.gpu);
  });
}

inline Return give_text(std::string_view text, char* buffer, std::uint32_t length) {
  if (length <= text.size()) return Return::insufficient_size;
  std::memcpy(buffer, text.data(), text.size());
  buffer[text.size()] = '\0';
  return Return::success;
}

}  // namespace gantry::fake
