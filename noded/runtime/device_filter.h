// Which devices jobs may open: one rule set for the node's whole cgroup, inherited by every job.
// v1: devices.deny and devices.allow; v2: a small eBPF program attached to the directory.
//
// Allowed: mknod (no job has the capability; an OCI runtime makes the container's own nodes), null,
// zero, full, random, urandom, tty, ptmx, pseudo terminals, and tun is not among them.
#pragma once

#include "common/result.h"
#include "noded/runtime/cgroup_layout.h"

namespace gantry::runtime {

// Idempotent: a restart of noded replaces what an earlier one attached.
Result<void> install_device_filter(const CgroupLayout& layout);

// runc on v1 writes a list of its own for each container, with tun in it, which the node's list
// must not refuse. No container gets a node of it.
void allow_for_runc(const CgroupLayout& layout);

}  // namespace gantry::runtime
