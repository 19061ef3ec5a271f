// NVML's return codes as clauses.
#include "noded/gpu/nvml/nvml_types.h"

namespace gantry::gpu::nvml {

std::string_view text_of(Return code) {
  switch (code) {
    case Return::success: return "done";
    case Return::uninitialized: return "the library is not initialised";
    case Return::invalid_argument: return "the driver takes an argument for invalid";
    case Return::not_supported: return "the GPU or the driver does not support this";
    case Return::no_permission: return "permission denied";
    case Return::not_found: return "there is none";
    case Return::insufficient_size: return "the buffer is too small";
    case Return::driver_not_loaded: return "the NVIDIA driver is not loaded";
    case Return::timeout: return "the driver did not answer in time";
    case Return::library_not_found: return "a library of the driver is missing";
    case Return::function_not_found: return "the driver's library is too old to have this";
    case Return::gpu_is_lost: return "the GPU has fallen off the bus";
    case Return::reset_required: return "the GPU has to be reset";
    case Return::operating_system: return "the operating system or a cgroup forbids it";
    case Return::version_mismatch: return "library and kernel driver are of different versions";
    case Return::in_use: return "it is in use";
    case Return::memory: return "not enough memory";
    case Return::insufficient_resources: return "there is no room for it on the GPU";
    case Return::argument_version_mismatch: return "the driver does not know this struct's version";
    case Return::not_ready: return "the GPU is not ready";
    case Return::gpu_not_found: return "there is no such GPU";
    case Return::unknown: break;
  }
  return "the driver reports an unknown error";
}

}  // namespace gantry::gpu::nvml
