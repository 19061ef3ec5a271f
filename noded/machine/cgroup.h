// Cgroups of jobs: one directory per attempt (and one below it per step), in each hierarchy of a
// v1 or hybrid machine, or in the only one of v2. All functions are idempotent.
//
//   <mount>/<root>/<node>/job_<id>.<attempt>             limits; the batch script's processes
//   <mount>/<root>/<node>/job_<id>.<attempt>/step_<n>    a step's (v1: freezer, cpuacct, memory)
//
// Gantry writes the limits itself, before any process enters, so it tells the OCI runtime to leave
// cgroups alone. For devices see install_device_filter().
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/fields.h"
#include "common/job/job_state.h"
#include "common/result.h"
#include "noded/machine/device.h"
#include "noded/machine/files.h"

namespace gantry::runtime {

// The cgroup directories on this machine. They are found once when noded starts, and passed to
// every shim.

// One hierarchy: v1 has one for each controller (or for a few together), v2 has one for all.
struct CgroupMount {
  std::string path;                      // the node's own directory: <mount>/<root>/<node>
  std::vector<std::string> controllers;  // controllers of the hierarchy that Gantry uses
  GANTRY_FIELDS(FIELD(1, path), FIELD(2, controllers))
};

struct CgroupLayout {
  std::uint32_t version = 0;        // 0 = none is writable, 1 = v1 or hybrid, 2 = unified
  std::vector<CgroupMount> mounts;  // v2: exactly one
  std::string relative;             // "/gantry/n1", the same in every hierarchy
  bool swap_accounting = false;     // v1: memory.memsw.*, v2: memory.swap.max exist
  // The node's directory in v1 hierarchies that Gantry does not use, but in which the OCI runtime
  // makes directories too (cpu, name=systemd). Gantry only removes these.
  std::vector<std::string> others;
  // Majors of character devices that only some jobs may open: GPUs. Empty: jobs need no rules of
  // their own.
  std::vector<std::uint32_t> device_majors;
  GANTRY_FIELDS(FIELD(1, version), FIELD(2, mounts), FIELD(3, relative), FIELD(4, swap_accounting),
                FIELD(5, others), FIELD(6, device_majors))
  [[nodiscard]] const CgroupMount* with(std::string_view controller) const {
    for (const auto& m : mounts)
      for (const auto& c : m.controllers)
        if (c == controller) return &m;
    return nullptr;
  }
};

struct CgroupLimits {
  std::vector<std::uint16_t> cpus;  // empty = inherited
  std::vector<std::uint16_t> mems;  // empty = inherited
  std::int64_t memory = 0;          // bytes, 0 = none
  std::uint32_t pids = 0;           // 0 = none
  // Devices of layout.device_majors that the job may open; no others of those majors.
  std::vector<DeviceRule> devices;
  std::uint64_t io_rate = 0;  // bytes per second, reads and writes of each disk; 0 = none
};

// Disks of the machine as "MAJOR:MINOR", without devices that only show files or memory (loop,
// ram).
std::vector<std::string> list_disks();
// Limits the cgroup's reads and writes on one disk; each in bytes and requests per second, 0 = no
// limit. Error unsupported: there is no controller for that.
struct IoLimit {
  std::uint64_t bytes = 0, requests = 0;
};
Result<void> limit_io(const CgroupLayout& layout, const std::string& name, const std::string& disk,
                      const IoLimit& limit);
// v2: the cgroup's weight among those that compete for the same cores; the default is 100.
Result<void> weigh_cpu(const CgroupLayout& layout, const std::string& name, std::uint64_t weight);

// Finds the hierarchies, makes <root>/<node> in each writable one, and enables controllers. If none
// is writable, version is 0 and `why_not` has the reasons.
CgroupLayout discover_cgroups(const std::string& root, const std::string& node,
                              std::vector<std::string>& why_not);

// `name` is the path below the node's directory: "job_7.1" or "job_7.1/step_0".
Result<void> create_cgroup(const CgroupLayout& layout, const std::string& name,
                           const CgroupLimits& limits);
// `memory` is the limit in bytes of the step alone, 0 = none. With v2 memory is counted only for
// whole jobs, so a step has no limit of its own; see counts_memory(). `closed`: devices of its job
// that the step may not open; see has_device_rules().
Result<void> create_step_cgroup(const CgroupLayout& layout, const std::string& name,
                                std::int64_t memory, const std::vector<DeviceRule>& closed);
// Whether the kernel counts the memory of `name`, and enforces its limit.
bool counts_memory(const CgroupLayout& layout, const std::string& name);
// The memory that the processes in `name` use now, in bytes; shared memory counts for each process.
std::int64_t resident_bytes(const CgroupLayout& layout, const std::string& name);

// Opens a file in every hierarchy through which a child with one thread enters `name`: between fork
// and exec it writes "0" into each of them.
std::vector<Fd> open_cgroup_entries(const CgroupLayout& layout, const std::string& name);

// v2: opens the directory itself, for clone3 with CLONE_INTO_CGROUP, which takes no system-wide
// lock, unlike a move. Empty on v1.
Fd open_cgroup_directory(const CgroupLayout& layout, const std::string& name);

// Stops every process in and below `name` where it is, or continues them. Processes may run for
// some milliseconds after the call. Error wrong_state: no cgroup here can do this.
Result<void> freeze_cgroup(const CgroupLayout& layout, const std::string& name, bool frozen);
bool can_freeze(const CgroupLayout& layout);  // a node daemon without root on v1 cannot
// Whether it is frozen, or just being frozen.
bool is_frozen(const CgroupLayout& layout, const std::string& name);

Usage read_usage(const CgroupLayout& layout, const std::string& name);
std::uint32_t read_oom_kills(const CgroupLayout& layout, const std::string& name);

// Processes in `name` and below it.
std::vector<int> cgroup_processes(const CgroupLayout& layout, const std::string& name);

// Sends a signal to the processes in `name` and below it for which `hears` is true, or to all if
// there is no `hears`. If the kernel reuses a process number meanwhile for a process outside, that
// one gets no signal.
void signal_cgroup(const CgroupLayout& layout, const std::string& name, int number,
                   const std::function<bool(int pid)>& hears = {});

// Sends SIGKILL to everything in and below `name`, fork bombs included: with cgroup.kill, or by
// freezing, signalling and thawing until it is empty. Returns false if something is still there
// after `patience`.
bool kill_cgroup(const CgroupLayout& layout, const std::string& name, Duration patience);

// Removes `name` and everything below; returns false if a directory is still busy after `patience`.
bool remove_cgroup(const CgroupLayout& layout, const std::string& name, Duration patience);

// Names of all job directories that exist in any hierarchy.
std::vector<std::string> list_cgroups(const CgroupLayout& layout);

std::string cpu_list(const std::vector<std::uint16_t>& ids);  // "0-3,8"; sorted input

// The devices that jobs may open. Every job inherits one rule set from the node's cgroup. On a node
// with GPUs each job has another one, which denies all GPUs but its own. v1 uses devices.deny and
// devices.allow; v2 a small eBPF program that is attached to the directory.
//
// Allowed are mknod (no job has the capability; an OCI runtime makes the container's own nodes),
// null, zero, full, random, urandom, tty, ptmx and pseudo terminals. tun is not allowed.

// Idempotent: after a restart noded replaces what an earlier one attached. These rules let devices
// of layout.device_majors pass.
Result<void> install_device_filter(const CgroupLayout& layout);

// Call it for the directory of a job before
// anything runs in it. Without device_majors it does nothing; with them, an error means that the
// job must not run.
Result<void> install_job_device_filter(const CgroupLayout& layout, const std::string& name,
                                       const std::vector<DeviceRule>& devices);

// Call it for the directory of a step before anything runs in it: its tasks cannot open these
// devices of the job.
Result<void> close_devices(const CgroupLayout& layout, const std::string& name,
                           const std::vector<DeviceRule>& devices);

// Whether jobs and steps can have device rules of their own here.
[[nodiscard]] bool has_device_rules(const CgroupLayout& layout);

// On v1 runc writes its own device list for each container, which contains tun; the kernel refuses
// that unless the node's list allows tun as well. No container gets a device node of tun.
void allow_for_runc(const CgroupLayout& layout);

}  // namespace gantry::runtime
