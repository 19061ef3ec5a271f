#include "tests/nvml/library.h"

#include <dlfcn.h>
#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>

namespace gantry::fake {
namespace {

struct Session {
  std::mutex mutex;
  std::uint32_t users = 0;
  std::optional<Mapping> mapping;
  State* state = nullptr;  // points into the mapping; calls read it without the mutex
};

Session& the_session() {
  static Session session;
  return session;
}

// The path is $GANTRY_FAKE_NVML, or else fleet.json beside this library.
std::string fleet_path() {
  if (const char* path = ::getenv("GANTRY_FAKE_NVML"); path != nullptr && *path != '\0')
    return path;
  Dl_info info{};
  if (::dladdr(reinterpret_cast<void*>(&the_session), &info) == 0 || info.dli_fname == nullptr)
    return "fleet.json";
  const std::string self = info.dli_fname;
  const auto slash = self.rfind('/');
  return slash == std::string::npos ? "fleet.json" : self.substr(0, slash + 1) + "fleet.json";
}

std::string state_path(const std::string& fleet) {
  const char* path = ::getenv("GANTRY_FAKE_NVML_STATE");
  return path != nullptr && *path != '\0' ? path : fleet + ".state";
}

Return open_session() {
  Session& session = the_session();
  const std::scoped_lock guard(session.mutex);
  if (session.users == 0) {
    const std::string fleet = fleet_path();
    auto mapping = Mapping::open(state_path(fleet), fleet);
    if (!mapping) return Return::driver_not_loaded;
    session.mapping.emplace(std::move(*mapping));
    session.state = &**session.mapping;
  }
  ++session.users;
  return Return::success;
}

void close_session() {
  Session& session = the_session();
  const std::scoped_lock guard(session.mutex);
  if (session.users == 0 || --session.users > 0) return;
  session.state = nullptr;
  session.mapping.reset();
}

FaultState* fault_of(State& state, const char* call, std::uint32_t gpu) {
  for (FaultState& fault : state.faults)
    if (fault.times != 0 && std::strncmp(fault.call, call, sizeof fault.call) == 0 &&
        (fault.gpu == kNone || fault.gpu == gpu))
      return &fault;
  return nullptr;
}

}  // namespace

State* session() {
  return the_session().state;
}

Entry::Entry(const char* call, std::uint32_t gpu) : state_(session()) {
  if (state_ == nullptr) {
    refused_ = Return::uninitialized;
    return;
  }
  lock_.emplace(*state_);
  if (++state_->calls == state_->crash_at) ::_exit(86);
  FaultState* fault = fault_of(*state_, call, gpu);
  if (fault == nullptr) return;
  if (fault->times != kNone) --fault->times;
  refused_ = static_cast<Return>(fault->code);
  if (const int delay = static_cast<int>(fault->delay_ms); delay > 0) {
    lock_.reset();
    ::poll(nullptr, 0, delay);
    lock_.emplace(*state_);
  }
}

Handle decode(const void* handle) {
  const auto bits = reinterpret_cast<std::uint64_t>(handle);
  return {static_cast<HandleKind>(bits >> 56), static_cast<std::uint32_t>(bits >> 40 & 0xFFFF),
          static_cast<std::uint32_t>(bits >> 32 & 0xFF),
          static_cast<std::uint32_t>(bits >> 24 & 0xFF),
          static_cast<std::uint32_t>(bits & 0xFFFFFF)};
}

namespace {

// Finds the instance that a handle names, of the handle's generation; `gone` is returned if it does
// not exist.
Target find(State& state, const Handle& h, Return gone) {
  Target out;
  if (h.gpu >= state.gpu_count) return {Return::invalid_argument};
  out.gpu = &state.gpus[h.gpu];
  out.gpu_index = h.gpu;
  if (out.gpu->lost != 0) return {Return::gpu_is_lost};
  if (h.kind == HandleKind::gpu) return out;
  out.instance = find_instance(*out.gpu, h.instance);
  if (out.instance == nullptr) return {gone};
  if (h.kind == HandleKind::instance)
    return out.instance->generation == h.generation ? out : Target{gone};
  out.compute = find_compute(*out.instance, h.compute);
  if (out.compute == nullptr || out.compute->generation != h.generation) return {gone};
  return out;
}

}  // namespace

Target target_of(State& state, nvml::Device device) {
  const Handle h = decode(device);
  if (h.kind != HandleKind::gpu && h.kind != HandleKind::mig) return {Return::invalid_argument};
  return find(state, h, Return::invalid_argument);
}

Target target_of(State& state, nvml::GpuInstance instance) {
  const Handle h = decode(instance);
  if (h.kind != HandleKind::instance) return {Return::invalid_argument};
  return find(state, h, Return::not_found);
}

Target target_of(State& state, nvml::ComputeInstance compute) {
  const Handle h = decode(compute);
  if (h.kind != HandleKind::compute) return {Return::invalid_argument};
  return find(state, h, Return::not_found);
}

std::uint32_t gpu_of(const void* handle) {
  return handle == nullptr ? kNone : decode(handle).gpu;
}

}  // namespace gantry::fake

using gantry::fake::Entry;
using gantry::fake::Return;

NVML_API Return nvmlInit_v2() {
  if (const Return code = gantry::fake::open_session(); code != Return::success) return code;
  Return refused = Return::success;
  {
    const Entry entry("nvmlInit_v2");
    refused = entry.refused();
  }
  if (refused != Return::success) gantry::fake::close_session();
  return refused;
}

NVML_API Return nvmlInit() {
  return nvmlInit_v2();
}

NVML_API Return nvmlShutdown() {
  if (gantry::fake::session() == nullptr) return Return::uninitialized;
  gantry::fake::close_session();
  return Return::success;
}

NVML_API const char* nvmlErrorString(Return code) {
  // text_of() returns literals, which end with a zero byte
  return gantry::gpu::nvml::text_of(code).data();
}
