// The device files that a job with a GPU or a slice needs, and no others. The numbers come from the
// kernel, not from files in /dev. A job that may use one GPU cannot open another GPU's file. Two
// slices share their GPU's file; the two capability files of each slice keep them apart.
#pragma once

#include <map>
#include <span>
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
// For tests, and for texts read elsewhere: parses /proc/devices and mig-minors.
DeviceNumbers parse_device_numbers(std::string_view devices, std::string_view mig_minors);

// Files for every job that has any GPU: nvidiactl, nvidia-uvm and nvidia-uvm-tools.
Result<std::vector<DeviceFile>> common_device_files(const DeviceNumbers& numbers);
// Files for a whole GPU, without the common ones.
Result<std::vector<DeviceFile>> device_files(const DeviceNumbers& numbers, const GpuDevice& gpu);
// Files for one slice of a GPU: the GPU's file and the capabilities of its GPU instance and compute
// instance.
Result<std::vector<DeviceFile>> device_files(const DeviceNumbers& numbers, const GpuDevice& gpu,
                                             const MigSlice& slice);

// Libraries and programs of NVIDIA's driver on this node, for jobs with their own root file system
// when no CDI specification lists what they need. The libraries are those of the driver that is
// loaded: they are in the directory of its libnvidia-ml.so.1 and have the names that the driver's
// packages and the container toolkit use. The programs come from the node's own directories.
struct DriverFile {
  std::string path;    // path in the container: "/usr/local/nvidia/lib64/libcuda.so.1"
  std::string source;  // path on the node, links followed: "/usr/lib64/libcuda.so.550.54.15"
  friend bool operator==(const DriverFile&, const DriverFile&) = default;
};

inline const std::vector<std::string> kProgramFolders{"/usr/bin", "/usr/local/bin", "/opt/bin"};

// `library` is the path of the driver's libnvidia-ml. The files are sorted by path, each once.
std::vector<DriverFile> driver_files(const std::string& library,
                                     std::span<const std::string> program_folders);

}  // namespace gantry::gpu
