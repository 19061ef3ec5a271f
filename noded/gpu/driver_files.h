// Libraries and programs of NVIDIA's driver on this node, for jobs that bring a root of their own
// where no CDI specification says what they need. They are those of the driver that is loaded: what
// lies beside its libnvidia-ml.so.1, by the names that the driver's packages and the container
// toolkit use, each under its own name; programs from where the node keeps its own.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace gantry::gpu {

struct DriverFile {
  std::string path;    // in the container: "/usr/local/nvidia/lib64/libcuda.so.1"
  std::string source;  // on the node, links followed: "/usr/lib64/libcuda.so.550.54.15"
  friend bool operator==(const DriverFile&, const DriverFile&) = default;
};

inline const std::vector<std::string> kProgramFolders{"/usr/bin", "/usr/local/bin", "/opt/bin"};

// `library`: the path of its libnvidia-ml. By path; a library twice is not there.
std::vector<DriverFile> driver_files(const std::string& library,
                                     std::span<const std::string> program_folders);

}  // namespace gantry::gpu
