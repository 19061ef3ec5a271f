// Cgroups of jobs: one directory per attempt (and one below it per step), in each hierarchy of a
// v1 or hybrid machine, or in the only one of v2. All functions are idempotent.
//
//   <mount>/<root>/<node>/job_<id>.<attempt>             limits; the batch script's processes
//   <mount>/<root>/<node>/job_<id>.<attempt>/step_<n>    a step's (v1: freezer, cpuacct, memory)
//
// Gantry writes the limits itself, before any process enters, so it tells the OCI runtime to leave
// cgroups alone. For devices see device_filter.h.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/job/job_state.h"
#include "common/result.h"
#include "noded/machine/cgroup_layout.h"
#include "noded/machine/device.h"
#include "noded/machine/files.h"

namespace gantry::runtime {

struct CgroupLimits {
  std::vector<std::uint16_t> cpus;  // empty = inherited
  std::vector<std::uint16_t> mems;  // empty = inherited
  std::int64_t memory = 0;          // bytes, 0 = none
  std::uint32_t pids = 0;           // 0 = none
  // Devices of layout.device_majors that it may open; no others of those majors.
  std::vector<DeviceRule> devices;
  std::uint64_t io_rate = 0;  // bytes per second, reads and writes of each disk; 0 = none
};

// Disks of the machine as "MAJOR:MINOR"; what only shows files or memory again (loop, ram) is left
// out.
std::vector<std::string> list_disks();
// Limits what the cgroup reads, and what it writes, on one disk; of each the bytes and the requests
// per second, 0 = no limit. unsupported: no controller for that is there.
struct IoLimit {
  std::uint64_t bytes = 0, requests = 0;
};
Result<void> limit_io(const CgroupLayout& layout, const std::string& name, const std::string& disk,
                      const IoLimit& limit);
// v2: its weight among the cgroups that want the same cores; 100 is everybody's.
Result<void> weigh_cpu(const CgroupLayout& layout, const std::string& name, std::uint64_t weight);

// Finds the hierarchies, makes <root>/<node> in each that can be written, and turns controllers on.
// If no hierarchy can be written, version is 0 and `why_not` has the reasons.
CgroupLayout discover_cgroups(const std::string& root, const std::string& node,
                              std::vector<std::string>& why_not);

// `name` is the path below the node's directory: "job_7.1" or "job_7.1/step_0".
Result<void> create_cgroup(const CgroupLayout& layout, const std::string& name,
                           const CgroupLimits& limits);
// `memory` is the limit in bytes of the step alone, 0 = none. With v2 the kernel counts memory for
// whole jobs only, and so keeps no limit of a step; see counts_memory(). `closed`: devices of its
// job that the step may not open; see has_device_rules().
Result<void> create_step_cgroup(const CgroupLayout& layout, const std::string& name,
                                std::int64_t memory, const std::vector<DeviceRule>& closed);
// Does the kernel count the memory of `name`, and keep its limit?
bool counts_memory(const CgroupLayout& layout, const std::string& name);
// The memory that the processes in `name` have now, in bytes; what they share counts for each.
std::int64_t resident_bytes(const CgroupLayout& layout, const std::string& name);

// Opens a file in every hierarchy through which a child with one thread enters `name`: between fork
// and exec it writes "0" into each of them.
std::vector<Fd> open_cgroup_entries(const CgroupLayout& layout, const std::string& name);

// v2: opens the directory itself, for clone3 with CLONE_INTO_CGROUP. Unlike a move, that takes no
// lock of the whole system. Empty on v1.
Fd open_cgroup_directory(const CgroupLayout& layout, const std::string& name);

// Stops every process in and below `name` where it is, or lets them go on. Processes may run for
// some milliseconds after the call. wrong_state: no cgroup here can do this.
Result<void> freeze_cgroup(const CgroupLayout& layout, const std::string& name, bool frozen);
bool can_freeze(const CgroupLayout& layout);  // a node daemon without root on v1 cannot
// Is it frozen, or just being frozen?
bool is_frozen(const CgroupLayout& layout, const std::string& name);

Usage read_usage(const CgroupLayout& layout, const std::string& name);
std::uint32_t read_oom_kills(const CgroupLayout& layout, const std::string& name);

// Processes in `name` and below it.
std::vector<int> cgroup_processes(const CgroupLayout& layout, const std::string& name);

// Sends a signal to the processes in `name` and below it for which `hears` is true; if there is no
// `hears`, to every one. The kernel reuses process numbers; if another process outside got a number
// meanwhile, it gets no signal.
void signal_cgroup(const CgroupLayout& layout, const std::string& name, int number,
                   const std::function<bool(int pid)>& hears = {});

// Sends SIGKILL to everything in and below `name`, fork bombs included: by cgroup.kill, or by
// freezing, signalling and thawing until it is empty. False: something is still there after
// `patience`.
bool kill_cgroup(const CgroupLayout& layout, const std::string& name, Duration patience);

// Removes `name` and everything below; false when a directory is still busy after `patience`.
bool remove_cgroup(const CgroupLayout& layout, const std::string& name, Duration patience);

// Names of all job directories that exist in any hierarchy.
std::vector<std::string> list_cgroups(const CgroupLayout& layout);

std::string cpu_list(const std::vector<std::uint16_t>& ids);  // "0-3,8"; sorted input

}  // namespace gantry::runtime
