#include "noded/gpu/devices.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <memory>

#include "noded/machine/device.h"
#include "noded/machine/files.h"

namespace gantry::gpu {

namespace {

// These numbers are fixed by the driver; minors below 248 are GPUs.
constexpr std::uint32_t kControlMinor = 255, kUvmMinor = 0, kUvmToolsMinor = 1;

std::optional<std::uint32_t> number_in(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The name of the GPUs' major number in /proc/devices varies: it was "nvidia-frontend" until driver
// 550.
Result<std::uint32_t> gpu_major(const DeviceNumbers& numbers) {
  for (const std::string_view name : {"nvidia", "nvidia-frontend"})
    if (const auto found = numbers.majors.find(name); found != numbers.majors.end())
      return found->second;
  return fail(ErrorCode::unavailable,
              "/proc/devices lists no nvidia: the NVIDIA kernel module is not loaded");
}

Result<std::uint32_t> major_of(const DeviceNumbers& numbers, std::string_view name,
                               std::string_view module) {
  if (const auto found = numbers.majors.find(name); found != numbers.majors.end())
    return found->second;
  return fail(ErrorCode::unavailable,
              fmt::format("/proc/devices lists no {}: load the kernel module {}", name, module));
}

Result<DeviceFile> capability(const DeviceNumbers& numbers, const std::string& name) {
  ASSIGN(major, major_of(numbers, "nvidia-caps", "nvidia"));
  const auto minor = numbers.mig_minors.find(name);
  if (minor == numbers.mig_minors.end())
    return fail(ErrorCode::not_found,
                fmt::format("/proc/driver/nvidia-caps/mig-minors has no {}", name));
  return DeviceFile{fmt::format("/dev/nvidia-caps/nvidia-cap{}", minor->second), *major,
                    minor->second, "r"};
}

// Libraries for computing and for querying GPUs; none for displays, video or container tools.
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

DeviceNumbers parse_device_numbers(std::string_view devices, std::string_view mig_minors) {
  DeviceNumbers out;
  bool characters = false;  // block devices have their own numbers, which do not count
  for (const std::string& line : split(devices, '\n')) {
    const std::string text = runtime::trim(line);
    if (text.ends_with(':')) characters = text == "Character devices:";
    const auto blank = text.find(' ');
    if (!characters || blank == std::string::npos) continue;
    if (const auto major = number_in(std::string_view(text).substr(0, blank)))
      out.majors[runtime::trim(std::string_view(text).substr(blank))] = *major;
  }
  for (const std::string& line : split(mig_minors, '\n')) {
    const auto blank = line.find(' ');
    if (blank == std::string::npos) continue;
    if (const auto minor = number_in(runtime::trim(std::string_view(line).substr(blank))))
      out.mig_minors[line.substr(0, blank)] = *minor;
  }
  return out;
}

Result<DeviceNumbers> read_device_numbers(const Roots& roots) {
  ASSIGN(devices, runtime::read_file(roots.proc + "/devices"));
  // Drivers without MIG have no such file.
  const auto minors = runtime::read_file(roots.proc + "/driver/nvidia-caps/mig-minors");
  return parse_device_numbers(*devices, minors.value_or(""));
}

Result<std::vector<DeviceFile>> common_device_files(const DeviceNumbers& numbers) {
  ASSIGN(gpus, gpu_major(numbers));
  ASSIGN(uvm, major_of(numbers, "nvidia-uvm", "nvidia-uvm"));
  return std::vector<DeviceFile>{{"/dev/nvidiactl", *gpus, kControlMinor, "rw"},
                                 {"/dev/nvidia-uvm", *uvm, kUvmMinor, "rw"},
                                 {"/dev/nvidia-uvm-tools", *uvm, kUvmToolsMinor, "rw"}};
}

Result<std::vector<DeviceFile>> device_files(const DeviceNumbers& numbers, const GpuDevice& gpu) {
  ASSIGN(major, gpu_major(numbers));
  return std::vector<DeviceFile>{
      {fmt::format("/dev/nvidia{}", gpu.minor), *major, gpu.minor, "rw"}};
}

Result<std::vector<DeviceFile>> device_files(const DeviceNumbers& numbers, const GpuDevice& gpu,
                                             const MigSlice& slice) {
  auto files = device_files(numbers, gpu);
  if (!files) return files;
  const std::string base = fmt::format("gpu{}/gi{}/", gpu.minor, slice.gpu_instance);
  for (const std::string& name :
       {base + "access", base + fmt::format("ci{}/access", slice.compute_instance)}) {
    ASSIGN(file, capability(numbers, name));
    files->push_back(std::move(*file));
  }
  return files;
}

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
  std::ranges::sort(out, [](auto& a, auto& b) { return a.path < b.path; });
  return out;
}

}  // namespace gantry::gpu
