// File systems that hold no files of users: their "files" are the kernel's own state. Neither a
// job's output nor a mount may be on one, whatever links the user's path leads through.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace gantry::runtime {

struct PseudoFileSystem {
  std::string_view name;  // name in /proc/self/mountinfo
  long magic = 0;         // f_type of statfs(2); 0 = the number is also that of a real file system
};

inline constexpr std::array<PseudoFileSystem, 29> kPseudoFileSystems{{
    {"proc", 0x9fa0},
    {"sysfs", 0x62656572},
    {"cgroup", 0x27e0eb},
    {"cgroup2", 0x63677270},
    {"devtmpfs", 0},
    {"devpts", 0x1cd1},
    {"debugfs", 0x64626720},
    {"tracefs", 0x74726163},
    {"mqueue", 0x19800202},
    {"bpf", 0xcafe4a11},
    {"pstore", 0x6165676c},
    {"securityfs", 0x73636673},
    {"efivarfs", 0xde5e81e4},
    {"binfmt_misc", 0x42494e4d},
    {"configfs", 0x62656570},
    {"selinuxfs", 0xf97cff8c},
    {"smackfs", 0x43415d53},
    {"apparmorfs", 0x5a3c69f0},
    {"nsfs", 0x6e736673},
    {"sockfs", 0x534f434b},
    {"pipefs", 0x50495045},
    {"anon_inodefs", 0x9041934},
    {"rpc_pipefs", 0x67596969},
    {"nfsd", 0x6e667364},
    {"fusectl", 0x65735543},
    {"resctrl", 0x7655821},
    {"xenfs", 0xabba1974},
    {"pidfs", 0x50494446},
    {"cpuset", 0x27e0eb},
}};

// Returns "" if it is no pseudo file system.
inline std::string_view pseudo_of_magic(long magic) {
  const auto at = std::find_if(
      kPseudoFileSystems.begin(), kPseudoFileSystems.end(), [&](const PseudoFileSystem& fs) {
        return fs.magic != 0 && (fs.magic & 0xffffffffL) == (magic & 0xffffffffL);
      });
  return at == kPseudoFileSystems.end() ? std::string_view() : at->name;
}

inline bool is_pseudo_name(std::string_view name) {
  return std::any_of(kPseudoFileSystems.begin(), kPseudoFileSystems.end(),
                     [&](const PseudoFileSystem& fs) { return fs.name == name; });
}

}  // namespace gantry::runtime
