// Libraries and programs of NVIDIA's driver on this node, for jobs that bring a root of their own
// where no CDI specification says what they need. The libraries are those of the driver that is
// loaded: they lie beside its libnvidia-ml.so.1 and have the names that the driver's packages and
// the container toolkit use, each under its own name. The programs come from where the node keeps
// its own.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace gantry::gpu {

struct DriverFile {
  std::string path;    // path in the container: "/usr/local/nvidia/lib64/libcuda.so.1"
  std::string source;  // path on the node, links followed: "/usr/lib64/libcuda.so.550.54.15"
  friend bool operator==(const DriverFile&, const DriverFile&) = default;
};

inline const std::vector<std::string> kProgramFolders{"/usr/bin", "/usr/local/bin", "/opt/bin"};

// `library` is the path of the driver's libnvidia-ml. The files are sorted by path; none comes
// twice.
std::vector<DriverFile> driver_files(const std::string& library,
                                     std::span<const std::string> program_folders);

}  // namespace gantry::gpu
