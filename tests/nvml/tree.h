// What the kernel would show of the stand-in's GPUs: a folder with `proc`, `sys` and `dev` in it.
#pragma once

#include <string>

#include "common/result.h"
#include "tests/nvml/state.h"

namespace gantry::fake {

inline constexpr std::uint32_t kGpuMajor = 195, kUvmMajor = 508, kCapsMajor = 511;

// ROOT/proc/devices, ROOT/proc/driver/nvidia-caps/mig-minors, ROOT/proc/driver/nvidia/gpus,
// ROOT/sys/bus/pci/devices, and ROOT/dev with device nodes; with plain files in their place where
// this process may not make nodes.
Result<void> write_tree(const State& state, const std::string& root);

}  // namespace gantry::fake
