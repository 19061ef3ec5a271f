// Makes a folder with `proc`, `sys` and `dev` that shows the stand-in's GPUs as the kernel would
// show them.
#pragma once

#include <string>

#include "common/result.h"
#include "tests/nvml/state.h"

namespace gantry::fake {

inline constexpr std::uint32_t kGpuMajor = 195, kUvmMajor = 508, kCapsMajor = 511;

// Writes ROOT/proc/devices, ROOT/proc/driver/nvidia-caps/mig-minors, ROOT/proc/driver/nvidia/gpus,
// ROOT/sys/bus/pci/devices, and device nodes in ROOT/dev. If this process may not make device
// nodes, they are plain files.
Result<void> write_tree(const State& state, const std::string& root);

}  // namespace gantry::fake
