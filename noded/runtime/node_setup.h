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
  GANTRY_FIELDS(FIELD(1, node), FIELD(2, cluster), FIELD(3, state_dir), FIELD(4, mount_dir),
                FIELD(5, runtime), FIELD(6, runtime_path), FIELD(7, shim_path), FIELD(8, init_path),
                FIELD(9, cgroups), FIELD(10, hide_cgroup2), FIELD(11, rootless),
                FIELD(12, user_namespace), FIELD(13, subid_base), FIELD(14, allow_root_jobs),
                FIELD(15, writable_paths), FIELD(16, image_dirs), FIELD(17, image_cache_dir),
                FIELD(18, scratch_dir), FIELD(19, notify_socket), FIELD(20, hook_timeout),
                FIELD(21, image_timeout), FIELD(22, image_cache_size), FIELD(23, image_size),
                FIELD(24, image_files), FIELD(33, storage), FIELD(34, stage_timeout),
                FIELD(29, gvisor_path), FIELD(30, vm_path), FIELD(31, image_check))
};

}  // namespace gantry::runtime
