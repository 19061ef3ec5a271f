#include "noded/gpu/driver_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

#include "noded/machine/device.h"
#include "noded/machine/files.h"

namespace gantry::gpu {
namespace {

// Libraries for computing and for looking at GPUs; none for displays, video or containers' own
// tools.
constexpr std::array<std::string_view, 16> kLibraries{"libcuda",
                                                      "libcudadebugger",
                                                      "libnvidia-ml",
                                                      "libnvidia-cfg",
                                                      "libnvidia-nscq",
                                                      "libnvidia-opencl",
                                                      "libnvidia-gpucomp",
                                                      "libnvidia-ptxjitcompiler",
                                                      "libnvidia-fatbinaryloader",
                                                      "libnvidia-nvvm",
                                                      "libnvidia-nvvm70",
                                                      "libnvidia-allocator",
                                                      "libnvidia-rtcore",
                                                      "libnvidia-compiler",
                                                      "libnvidia-pkcs11",
                                                      "libnvidia-pkcs11-openssl3"};
constexpr std::array<std::string_view, 2> kPrograms{"nvidia-smi", "nvidia-debugdump"};

// Accepts "libcuda.so", "libcuda.so.1" and "libcuda.so.550.54.15", but not "libcuda.so.bak".
bool is_library(std::string_view name) {
  for (const std::string_view library : kLibraries) {
    if (!name.starts_with(library)) continue;
    const std::string_view rest = name.substr(library.size());
    if (!rest.starts_with(".so")) continue;
    const std::string_view version = rest.substr(3);
    if (version.empty()) return true;
    if (version[0] == '.' && version.size() > 1 &&
        version.find_first_not_of("0123456789.") == std::string_view::npos)
      return true;
  }
  return false;
}

// Returns the regular file to which a path leads; "" if there is none.
std::string file_behind(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                         &std::free);
  struct stat st {};
  if (real == nullptr || ::stat(real.get(), &st) != 0 || !S_ISREG(st.st_mode)) return {};
  return real.get();
}

}  // namespace

std::vector<DriverFile> driver_files(const std::string& library,
                                     std::span<const std::string> program_folders) {
  std::vector<DriverFile> out;
  const std::string folder = library.substr(0, library.rfind('/'));
  if (library.find('/') == std::string::npos) return out;
  for (const std::string& name : runtime::list_dir(folder)) {
    if (!is_library(name)) continue;
    if (std::string source = file_behind(folder + "/" + name); !source.empty())
      out.push_back({std::string(runtime::kDriverLibraries) + "/" + name, std::move(source)});
  }
  for (const std::string_view program : kPrograms)
    for (const std::string& where : program_folders) {
      std::string source = file_behind(where + "/" + std::string(program));
      if (source.empty()) continue;
      out.push_back({"/usr/bin/" + std::string(program), std::move(source)});
      break;
    }
  std::sort(out.begin(), out.end(), [](auto& a, auto& b) { return a.path < b.path; });
  return out;
}

}  // namespace gantry::gpu
