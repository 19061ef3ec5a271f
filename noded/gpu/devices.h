// The device files that a job with a GPU or a slice needs, and no others. The numbers come from the
// kernel, not from what lies in /dev. A job that may use one GPU cannot open another GPU's file.
// Two slices share their GPU's file; the two capability files of each slice keep them apart.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/resources/gpu.h"
#include "common/result.h"
#include "noded/gpu/nvml/discover.h"

namespace gantry::gpu {

struct DeviceFile {
  std::string path;  // path in the container: "/dev/nvidia0"
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::string permissions;  // "rw", "r": what the device cgroup allows; never "m"
  friend bool operator==(const DeviceFile&, const DeviceFile&) = default;
};

// The kernel's device numbers. They are read again after slices were made or destroyed.
struct DeviceNumbers {
  std::map<std::string, std::uint32_t, std::less<>> majors;      // by name: "nvidia-uvm"
  std::map<std::string, std::uint32_t, std::less<>> mig_minors;  // "gpu0/gi1/access", "config"
};
Result<DeviceNumbers> read_device_numbers(const Roots& roots);
// For tests, and for texts that were read elsewhere: parses /proc/devices and mig-minors.
DeviceNumbers parse_device_numbers(std::string_view devices, std::string_view mig_minors);

// Files for every job that has any GPU: nvidiactl, nvidia-uvm and nvidia-uvm-tools.
Result<std::vector<DeviceFile>> common_device_files(const DeviceNumbers& numbers);
// Files for a whole GPU, without the common ones.
Result<std::vector<DeviceFile>> device_files(const DeviceNumbers& numbers, const GpuDevice& gpu);
// Files for one slice of a GPU: the GPU's file and the capabilities of its GPU instance and compute
// instance.
Result<std::vector<DeviceFile>> device_files(const DeviceNumbers& numbers, const GpuDevice& gpu,
                                             const MigSlice& slice);

}  // namespace gantry::gpu
