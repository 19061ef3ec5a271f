// The devices that jobs may open. One rule set for the node's whole cgroup is inherited by every
// job. On a node with GPUs each job has another one, which closes all GPUs but its own. v1 uses
// devices.deny and devices.allow; v2 a small eBPF program that is attached to the directory.
//
// Allowed are mknod (no job has the capability; an OCI runtime makes the container's own nodes),
// null, zero, full, random, urandom, tty, ptmx and pseudo terminals. tun is not allowed.
#pragma once

#include <string>
#include <vector>

#include "common/result.h"
#include "noded/machine/cgroup_layout.h"
#include "noded/machine/device.h"

namespace gantry::runtime {

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

// Whether jobs and steps can have rules of their own here.
[[nodiscard]] bool has_device_rules(const CgroupLayout& layout);

// On v1 runc writes a device list of its own for each container, and tun is in it; the kernel
// refuses that unless the node's list allows tun as well. No container gets a device node of tun.
void allow_for_runc(const CgroupLayout& layout);

}  // namespace gantry::runtime
