// Which devices jobs may open: one rule set for the node's whole cgroup, inherited by every job,
// and on a node with GPUs one for each job that closes all of them but its own. v1: devices.deny
// and devices.allow; v2: a small eBPF program attached to the directory.
//
// Allowed: mknod (no job has the capability; an OCI runtime makes the container's own nodes), null,
// zero, full, random, urandom, tty, ptmx, pseudo terminals, and tun is not among them.
#pragma once

#include <string>
#include <vector>

#include "common/result.h"
#include "noded/machine/cgroup_layout.h"
#include "noded/machine/device.h"

namespace gantry::runtime {

// Idempotent: a restart of noded replaces what an earlier one attached. Devices of
// layout.device_majors pass here.
Result<void> install_device_filter(const CgroupLayout& layout);

// For the directory of a job before anything runs in it. Nothing to do without device_majors; with
// them an error means that the job must not run.
Result<void> install_job_device_filter(const CgroupLayout& layout, const std::string& name,
                                       const std::vector<DeviceRule>& devices);

// runc on v1 writes a list of its own for each container, with tun in it, which the node's list
// must not refuse. No container gets a node of it.
void allow_for_runc(const CgroupLayout& layout);

}  // namespace gantry::runtime
