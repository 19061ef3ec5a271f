// The state of the stand-in driver for all processes that use it is one file, mapped by each of
// them, with a lock in it. So GPU instances outlive a daemon as they do on hardware, and a test or
// gantry-fake-gpu can change what a running daemon sees.
//
// The state is plain data at fixed places: it may hold no pointer. If a process dies with the lock,
// the next one takes it over (robust mutex).
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
inline constexpr std::uint32_t kMostEvents = 1024;  // a slower reader loses events
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
  std::uint32_t generation;  // part of its handles: a handle of an earlier instance is stale
  char uuid[48];
};

struct InstanceState {
  std::uint32_t live, id, profile;  // `profile` is an index in Model::profiles
  std::uint32_t start, generation;
  std::uint32_t utilization;
  std::uint64_t memory_used;  // bytes, besides those of processes
  ComputeState compute[kMostComputeInstances];
};

enum class ProcessKind : std::uint32_t { compute, mps, graphics };

struct ProcessState {
  std::uint32_t pid;  // 0 if the entry is free
  std::uint32_t gpu_instance, compute_instance;
  ProcessKind kind;
  std::uint64_t bytes;
};

struct GpuState {
  std::uint32_t model;  // index in models()
  char uuid[48];
  std::uint32_t pci_domain, pci_bus, pci_slot;
  std::uint32_t minor;
  std::int32_t numa;
  std::uint32_t mig_now, mig_later;
  std::uint32_t lost;
  std::uint32_t switched;  // its links end at switches; else at the other GPUs of its entry
  std::uint32_t links_down;
  std::uint32_t group_first, group_size;  // the GPUs of the same entry in fleet.json
  std::uint32_t utilization, memory_utilization, power_mw, temperature;
  std::uint64_t memory_used;
  std::uint64_t clock_reasons;
  std::uint64_t ecc[2][2];  // [corrected or uncorrected][since the last reset or ever]
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

// Calls of one name return `code` instead of their result, and take longer.
struct FaultState {
  char call[64];
  std::uint32_t gpu;    // kNone for every GPU
  std::int32_t code;    // 0 if the call returns its normal result
  std::uint32_t times;  // how often it still applies; kNone for always
  std::uint32_t delay_ms;
};

struct State {
  std::uint32_t magic, version;
  pthread_mutex_t lock;
  std::uint32_t gpu_count;
  std::uint32_t events_word;  // the low bits of events_written, for futex
  std::uint64_t events_written;
  std::uint64_t calls;     // number of calls of all processes since the file was made
  std::uint64_t crash_at;  // a process ends at the call with this number; 0 for none
  std::uint64_t instances_made;
  std::int32_t cuda;
  char driver[80];
  FaultState faults[kMostFaults];
  EventState events[kMostEvents];
  GpuState gpus[1];  // there are gpu_count of them
};

inline const Model& model_of(const GpuState& gpu) {
  return models()[gpu.model];
}

// Maps the state's file.
class Mapping {
 public:
  // Opens `path`, and makes it first if it does not exist, as `fleet` says; fleet.h describes that
  // form.
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

// Appends to the ring and wakes waiting readers. The caller holds the lock.
void post_event(State& state, const EventState& event);
// Waits until events_written differs from `seen` or the time is over; the caller does not hold the
// lock.
void wait_for_event(const State& state, std::uint64_t seen, std::uint32_t timeout_ms);

// Makes a UUID like "GPU-6e1d3f2a-..." from a number; equal numbers give equal UUIDs.
std::string make_uuid(std::string_view prefix, std::uint64_t number);

}  // namespace gantry::fake
