// Finds the cgroup hierarchies. It reads mountinfo and assumes no names, because each v1 controller
// may be mounted separately anywhere. It runs once, when noded starts.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "noded/machine/cgroup.h"

namespace gantry::runtime {
namespace {

constexpr std::string_view kUsed[] = {"memory",  "cpuset", "pids",   "freezer",
                                      "cpuacct", "blkio",  "devices"};

struct Mounts {
  std::vector<CgroupMount> v1;      // path = mount point
  std::vector<std::string> others;  // v1 hierarchies without a controller that Gantry uses
  std::string v2;
};

// If a hierarchy is mounted twice (for example in a chroot), the first mount is used.
Mounts read_mounts() {
  Mounts found;
  std::set<std::string> seen;  // seen device numbers; each hierarchy has its own
  const auto text = read_file("/proc/self/mountinfo");
  for (const auto& line : split(text.value_or(""), '\n')) {
    const auto dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const auto left = split(line.substr(0, dash), ' ');
    const auto right = split(line.substr(dash + 3), ' ');
    if (left.size() < 6 || right.size() < 3) continue;
    const std::string& at = left[4];
    if (right[0] != "cgroup" && right[0] != "cgroup2") continue;
    if (!seen.insert(left[2]).second) continue;
    if (right[0] == "cgroup2") {
      found.v2 = at;
      continue;
    }
    CgroupMount mount{at, {}};
    for (const auto& option : split(right[2], ','))
      if (std::find(std::begin(kUsed), std::end(kUsed), option) != std::end(kUsed))
        mount.controllers.push_back(option);
    if (mount.controllers.empty())
      found.others.push_back(at);
    else
      found.v1.push_back(mount);
  }
  return found;
}

// Like mkdir -p, below a mount. On v1 a new cpuset has no CPUs or memory nodes until they are
// copied.
Result<void> make_path(const std::string& top, const std::string& relative, bool is_cpuset) {
  std::string path = top;
  for (const auto& part : split(relative, '/')) {
    if (part.empty()) continue;
    const std::string parent = path;
    path += "/" + part;
    if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST)
      return fail_errno(ErrorCode::io_error, path);
    if (!is_cpuset) continue;
    for (const char* file : {"/cpuset.cpus", "/cpuset.mems"})
      if (trim(read_file(path + file).value_or("")).empty())
        try_write(path + file, trim(read_file(parent + file).value_or("")));
  }
  return {};
}

// v2: controllers are enabled from the top down. A directory with processes cannot enable them for
// its children, unless it is the root.
Result<void> enable_controllers(const std::string& top, const std::string& relative,
                                std::vector<std::string>& enabled) {
  std::string path = top;
  for (const auto& part : split(relative, '/')) {
    if (!part.empty()) path += "/" + part;
    const auto have = split(trim(read_file(path + "/cgroup.controllers").value_or("")), ' ');
    enabled.clear();
    for (const char* name : {"memory", "cpuset", "pids", "io", "cpu"}) {
      if (std::ranges::find(have, name) == have.end()) continue;
      if (try_write(path + "/cgroup.subtree_control", std::string("+") + name))
        enabled.emplace_back(name);
    }
  }
  if (std::ranges::find(enabled, "memory") == enabled.end())
    return fail(ErrorCode::unsupported, path + ": the memory controller cannot be turned on");
  return {};
}

}  // namespace

CgroupLayout discover_cgroups(const std::string& root, const std::string& node,
                              std::vector<std::string>& why_not) {
  CgroupLayout layout;
  const Mounts mounts = read_mounts();
  layout.relative = "/" + root + "/" + node;
  std::vector<std::string> complaints;
  for (const auto& mount : mounts.v1) {
    const bool is_cpuset =
        std::ranges::find(mount.controllers, "cpuset") != mount.controllers.end();
    if (auto r = make_path(mount.path, layout.relative, is_cpuset); !r) {
      complaints.push_back("cgroup " + r.error().message);
      continue;
    }
    layout.mounts.push_back({mount.path + layout.relative, mount.controllers});
  }
  // One complaint is enough.
  if (layout.mounts.empty() && complaints.size() > 1) complaints.resize(1);
  why_not.insert(why_not.end(), complaints.begin(), complaints.end());
  if (!layout.mounts.empty()) {
    layout.version = 1;
    for (const auto& other : mounts.others) layout.others.push_back(other + layout.relative);
    const auto* memory = layout.with("memory");
    layout.swap_accounting =
        memory != nullptr &&
        ::access((memory->path + "/memory.memsw.limit_in_bytes").c_str(), F_OK) == 0;
    return layout;
  }
  if (!mounts.v1.empty() || mounts.v2.empty()) {
    if (mounts.v1.empty()) why_not.emplace_back("no cgroup file system is mounted");
    return layout;
  }
  if (auto r = make_path(mounts.v2, layout.relative, false); !r) {
    why_not.push_back("cgroup " + r.error().message);
    return layout;
  }
  std::vector<std::string> enabled;
  if (auto r = enable_controllers(mounts.v2, layout.relative, enabled); !r) {
    why_not.push_back("cgroup " + r.error().message);
    return layout;
  }
  layout.version = 2;
  layout.mounts.push_back({mounts.v2 + layout.relative, enabled});
  layout.swap_accounting = ::access("/proc/swaps", F_OK) == 0;
  return layout;
}

}  // namespace gantry::runtime
