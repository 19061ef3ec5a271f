// The settings that all orders of this node share: which runtime starts containers, where files
// lie, and limits.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/fields.h"
#include "common/time/time.h"
#include "noded/machine/cgroup_layout.h"

namespace gantry::runtime {

enum class RuntimeKind : std::uint8_t { crun = 1, runc = 2, process = 3 };
constexpr auto enum_names(RuntimeKind) {
  return std::array<std::pair<RuntimeKind, std::string_view>, 3>{
      {{RuntimeKind::crun, "crun"},
       {RuntimeKind::runc, "runc"},
       {RuntimeKind::process, "process"}}};
}

// Written once when noded starts.
struct NodeSetup {
  std::string node;
  std::string cluster;
  std::string state_dir;
  std::string mount_dir;  // where a shim puts its private mounts; an empty directory
  RuntimeKind runtime = RuntimeKind::crun;
  std::string runtime_path;
  std::string shim_path;
  std::string init_path;
  CgroupLayout cgroups;
  std::string hide_cgroup2;  // a cgroup2 mount that the runtime must not see; "" = none
  bool rootless = false;
  bool user_namespace = true;
  std::uint32_t subid_base = 0x70000000;  // host ids of a container's other 65535 ids
  bool allow_root_jobs = false;
  std::vector<std::string> writable_paths;
  std::vector<std::string> storage;  // noded.storage: no job sees what lies below, but for grants
  std::vector<std::string> image_dirs;  // empty = any directory that the user may read
  std::string image_cache_dir;
  std::string scratch_dir;             // "" = no node-local scratch disk
  std::string notify_socket;           // datagrams to noded
  Duration hook_timeout = minutes(5);  // prolog, epilog
  Duration image_timeout = minutes(30);
  Duration stage_timeout = hours(2);  // of one copy from or to an object store
  std::int64_t image_cache_size = 0;  // bytes of all unpacked images
  std::int64_t image_size = 0;        // of one
  std::int64_t image_files = 0;
  // Runtimes of sandboxes that have a kernel of their own; "" = this node has none.
  std::string gvisor_path, vm_path;
  std::vector<std::string> image_check;  // program that looks at each new image; none = nobody does
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "node", s.node);
    v(2, "cluster", s.cluster);
    v(3, "state_dir", s.state_dir);
    v(4, "mount_dir", s.mount_dir);
    v(5, "runtime", s.runtime);
    v(6, "runtime_path", s.runtime_path);
    v(7, "shim_path", s.shim_path);
    v(8, "init_path", s.init_path);
    v(9, "cgroups", s.cgroups);
    v(10, "hide_cgroup2", s.hide_cgroup2);
    v(11, "rootless", s.rootless);
    v(12, "user_namespace", s.user_namespace);
    v(13, "subid_base", s.subid_base);
    v(14, "allow_root_jobs", s.allow_root_jobs);
    v(15, "writable_paths", s.writable_paths);
    v(16, "image_dirs", s.image_dirs);
    v(17, "image_cache_dir", s.image_cache_dir);
    v(18, "scratch_dir", s.scratch_dir);
    v(19, "notify_socket", s.notify_socket);
    v(20, "hook_timeout", s.hook_timeout);
    v(21, "image_timeout", s.image_timeout);
    v(22, "image_cache_size", s.image_cache_size);
    v(23, "image_size", s.image_size);
    v(24, "image_files", s.image_files);
    v(33, "storage", s.storage);
    v(34, "stage_timeout", s.stage_timeout);
    v(29, "gvisor_path", s.gvisor_path);
    v(30, "vm_path", s.vm_path);
    v(31, "image_check", s.image_check);
  }
};

}  // namespace gantry::runtime
