// What the stand-in driver keeps for all processes that use it: one file, mapped by each of them,
// with a lock in it. So GPU instances outlive a daemon as they do on hardware, and a test or
// gantry-fake-gpu changes what a running daemon sees.
//
// Plain data at fixed places: nothing here may hold a pointer. A process that dies with the lock
// leaves it to the next one (robust mutex).
#pragma once

#include <pthread.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "common/result.h"
#include "tests/nvml/models.h"

namespace gantry::fake {

inline constexpr std::uint32_t kMostGpuInstances = 8;
inline constexpr std::uint32_t kMostComputeInstances = 8;
inline constexpr std::uint32_t kMostProcesses = 64;
inline constexpr std::uint32_t kMostEvents = 1024;  // that a slow reader may be behind
inline constexpr std::uint32_t kMostFaults = 16;
inline constexpr std::uint32_t kMostGpus = 16'384;
inline constexpr std::uint32_t kNone = 0xFFFFFFFF;

template <std::size_t N>
void copy_text(char (&to)[N], std::string_view text) {
  std::memset(to, 0, N);
  std::memcpy(to, text.data(), text.size() < N ? text.size() : N - 1);
}

struct ComputeState {
  std::uint32_t live, id, slices, start;
  std::uint32_t generation;  // of its handles: those of an earlier instance are stale
  char uuid[48];
};

struct InstanceState {
  std::uint32_t live, id, profile;  // profile: place in Model::profiles
  std::uint32_t start, generation;
  std::uint32_t utilization;
  std::uint64_t memory_used;  // bytes, beside that of processes
  ComputeState compute[kMostComputeInstances];
};

enum class ProcessKind : std::uint32_t { compute, mps, graphics };

struct ProcessState {
  std::uint32_t pid;  // 0: a free place
  std::uint32_t gpu_instance, compute_instance;
  ProcessKind kind;
  std::uint64_t bytes;
};

struct GpuState {
  std::uint32_t model;  // place in models()
  char uuid[48];
  std::uint32_t pci_domain, pci_bus, pci_slot;
  std::uint32_t minor;
  std::int32_t numa;
  std::uint32_t mig_now, mig_later;
  std::uint32_t lost;
  std::uint32_t switched;  // its links end at switches; else at its neighbours of the same entry
  std::uint32_t links_down;
  std::uint32_t group_first, group_size;  // GPUs of the same entry
  std::uint32_t utilization, memory_utilization, power_mw, temperature;
  std::uint64_t memory_used;
  std::uint64_t clock_reasons;
  std::uint64_t ecc[2][2];  // corrected, uncorrected; since reset, ever
  std::uint32_t retired[2];
  std::uint32_t retired_pending;
  std::uint32_t remapped[2];
  std::uint32_t remap_pending, remap_failed;
  std::uint32_t recovery_action;
  InstanceState instances[kMostGpuInstances];
  ProcessState processes[kMostProcesses];
};

struct EventState {
  std::uint32_t gpu, gpu_instance, compute_instance;
  std::uint64_t type, data;
};

// Calls of one name answer `code` instead, and take longer.
struct FaultState {
  char call[64];
  std::uint32_t gpu;    // kNone: any
  std::int32_t code;    // 0: answer as ever
  std::uint32_t times;  // left; kNone: always
  std::uint32_t delay_ms;
};

struct State {
  std::uint32_t magic, version;
  pthread_mutex_t lock;
  std::uint32_t gpu_count;
  std::uint32_t events_word;  // low bits of events_written, for futex
  std::uint64_t events_written;
  std::uint64_t calls;     // of all processes, since it was made
  std::uint64_t crash_at;  // the process whose call this is ends there; 0 = none
  std::uint64_t instances_made;
  std::int32_t cuda;
  char driver[80];
  FaultState faults[kMostFaults];
  EventState events[kMostEvents];
  GpuState gpus[1];  // gpu_count of them
};

inline const Model& model_of(const GpuState& gpu) {
  return models()[gpu.model];
}

// The mapped file.
class Mapping {
 public:
  // Makes `path` as `fleet` says if there is none; see fleet.h for its form.
  static Result<Mapping> open(const std::string& path, const std::string& fleet);
  static Result<Mapping> open_existing(const std::string& path);
  Mapping(Mapping&& other) noexcept : state_(other.state_), size_(other.size_) {
    other.state_ = nullptr;
  }
  Mapping& operator=(Mapping&&) = delete;
  ~Mapping();
  State* operator->() const { return state_; }
  State& operator*() const { return *state_; }

 private:
  Mapping(State* state, std::size_t size) : state_(state), size_(size) {}
  State* state_;
  std::size_t size_;
};

class Lock {
 public:
  explicit Lock(State& state);
  ~Lock();
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  State& state_;
};

// Appends to the ring and wakes who waits. With the lock held.
void post_event(State& state, const EventState& event);
// Until events_written is not `seen` any more, or the time is over; without the lock.
void wait_for_event(const State& state, std::uint64_t seen, std::uint32_t timeout_ms);

// "GPU-6e1d3f2a-…" of a number: the same for the same number.
std::string make_uuid(std::string_view prefix, std::uint64_t number);

}  // namespace gantry::fake
