#include "tests/nvml/tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace gantry::fake {
namespace {

Result<void> make_dirs(const std::string& path) {
  for (std::size_t at = 1; at <= path.size(); ++at)
    if ((at == path.size() || path[at] == '/') && ::mkdir(path.substr(0, at).c_str(), 0755) != 0 &&
        errno != EEXIST)
      return fail(ErrorCode::io_error, path + ": " + std::strerror(errno));
  return {};
}

Result<void> write(const std::string& path, const std::string& text) {
  if (auto made = make_dirs(path.substr(0, path.rfind('/'))); !made) return made;
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const bool done =
      fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (fd >= 0) ::close(fd);
  if (!done) return fail(ErrorCode::io_error, path + ": " + std::strerror(errno));
  return {};
}

Result<void> make_node(const std::string& path, std::uint32_t major, std::uint32_t minor,
                       unsigned mode) {
  if (auto made = make_dirs(path.substr(0, path.rfind('/'))); !made) return made;
  ::unlink(path.c_str());
  if (::mknod(path.c_str(), S_IFCHR | mode, makedev(major, minor)) == 0)
    return ::chmod(path.c_str(), mode), Result<void>{};
  return write(path, "");
}

std::string pci_of(const GpuState& gpu) {
  char text[24];
  std::snprintf(text, sizeof text, "%04x:%02x:%02x.0", gpu.pci_domain & 0xFFFF, gpu.pci_bus & 0xFF,
                gpu.pci_slot & 0xFF);
  return text;
}

// Numbers capability files as the driver does: 15 GPU instances a GPU, 8 compute instances each.
std::string mig_minors(const State& state) {
  std::string text = "config 1\nmonitor 2\n";
  for (std::uint32_t i = 0; i < state.gpu_count; ++i) {
    const std::uint32_t gpu = state.gpus[i].minor;
    for (std::uint32_t gi = 0; gi < 15; ++gi) {
      const std::string name = "gpu" + std::to_string(gpu) + "/gi" + std::to_string(gi);
      const std::uint32_t minor = 3 + 135 * gpu + 9 * gi;
      text += name + "/access " + std::to_string(minor) + "\n";
      for (std::uint32_t ci = 0; ci < 8; ++ci)
        text +=
            name + "/ci" + std::to_string(ci) + "/access " + std::to_string(minor + 1 + ci) + "\n";
    }
  }
  return text;
}

}  // namespace

Result<void> write_tree(const State& state, const std::string& root) {
  const std::string devices =
      "Character devices:\n  1 mem\n  5 /dev/tty\n195 nvidia\n195 nvidiactl\n195 nvidia-modeset\n"
      "508 nvidia-uvm\n511 nvidia-caps\n\nBlock devices:\n  7 loop\n259 blkext\n";
  if (auto done = write(root + "/proc/devices", devices); !done) return done;
  if (auto done = write(root + "/proc/driver/nvidia-caps/mig-minors", mig_minors(state)); !done)
    return done;
  if (auto done = write(
          root + "/proc/driver/nvidia/version",
          std::string("NVRM version: NVIDIA UNIX x86_64 Kernel Module  ") + state.driver + "\n");
      !done)
    return done;
  struct Common {
    const char* path;
    std::uint32_t major, minor;
  };
  for (const Common& node :
       {Common{"/dev/nvidiactl", kGpuMajor, 255}, Common{"/dev/nvidia-modeset", kGpuMajor, 254},
        Common{"/dev/nvidia-uvm", kUvmMajor, 0}, Common{"/dev/nvidia-uvm-tools", kUvmMajor, 1},
        Common{"/dev/nvidia-caps/nvidia-cap1", kCapsMajor, 1},
        Common{"/dev/nvidia-caps/nvidia-cap2", kCapsMajor, 2}})
    if (auto done = make_node(root + node.path, node.major, node.minor,
                              node.major == kCapsMajor ? 0400 : 0666);
        !done)
      return done;
  for (std::uint32_t i = 0; i < state.gpu_count; ++i) {
    const GpuState& gpu = state.gpus[i];
    const std::string pci = pci_of(gpu);
    if (auto done = write(root + "/sys/bus/pci/devices/" + pci + "/numa_node",
                          std::to_string(gpu.numa) + "\n");
        !done)
      return done;
    if (auto done = write(root + "/proc/driver/nvidia/gpus/" + pci + "/information",
                          "Model: \t\t " + std::string(model_of(gpu).name) + "\nDevice Minor: \t " +
                              std::to_string(gpu.minor) + "\n");
        !done)
      return done;
    if (auto done =
            make_node(root + "/dev/nvidia" + std::to_string(gpu.minor), kGpuMajor, gpu.minor, 0666);
        !done)
      return done;
    for (const InstanceState& one : gpu.instances) {
      if (one.live == 0) continue;
      const std::uint32_t cap = 3 + 135 * gpu.minor + 9 * one.id;
      for (const std::uint32_t minor : {cap, cap + 1})
        if (auto done = make_node(root + "/dev/nvidia-caps/nvidia-cap" + std::to_string(minor),
                                  kCapsMajor, minor, 0444);
            !done)
          return done;
    }
  }
  return {};
}

}  // namespace gantry::fake
