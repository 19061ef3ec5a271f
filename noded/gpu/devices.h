// Which device files a job with a GPU or a slice needs, and no others: numbers from the kernel, not
// from what lies in /dev. A job that may use one GPU cannot open another's file; two slices share
// their GPU's file, and what parts them are the two capability files of each.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/resources/gpu.h"
#include "common/result.h"
#include "noded/gpu/nvml/discover.h"

namespace gantry::gpu {

struct DeviceFile {
  std::string path;  // in the container: "/dev/nvidia0"
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::string permissions;  // "rw", "r": what the device cgroup allows; never "m"
  friend bool operator==(const DeviceFile&, const DeviceFile&) = default;
};

// What the kernel says about device numbers. Read again after slices were made or destroyed.
struct DeviceNumbers {
  std::map<std::string, std::uint32_t, std::less<>> majors;      // by name: "nvidia-uvm"
  std::map<std::string, std::uint32_t, std::less<>> mig_minors;  // "gpu0/gi1/access", "config"
};
Result<DeviceNumbers> read_device_numbers(const Roots& roots);
// For tests and what comes from elsewhere: texts of /proc/devices and of mig-minors.
DeviceNumbers parse_device_numbers(std::string_view devices, std::string_view mig_minors);

// Of every job that has any GPU: nvidiactl, nvidia-uvm and nvidia-uvm-tools.
Result<std::vector<DeviceFile>> common_device_files(const DeviceNumbers& numbers);
// Of a whole GPU, without the common ones.
Result<std::vector<DeviceFile>> device_files(const DeviceNumbers& numbers, const GpuDevice& gpu);
// Of one slice of it: the GPU's file and the capabilities of GPU instance and compute instance.
Result<std::vector<DeviceFile>> device_files(const DeviceNumbers& numbers, const GpuDevice& gpu,
                                             const MigSlice& slice);

}  // namespace gantry::gpu
