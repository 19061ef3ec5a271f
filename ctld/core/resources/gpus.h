// GPUs of nodes: which of them jobs may have, who holds what, and what a fault ends.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ctld/core/context.h"

namespace gantry::core {

// Sound ones that the node's daemon found and nobody has drained, at most as many as the
// configuration declares. A node whose runtime knows nothing of devices (runtime none) has those
// that are declared.
std::vector<sched::GpuView> gpus_for_jobs(const Node& node);
// Those of gpus_for_jobs() without MIG mode.
std::uint32_t whole_gpus(const std::vector<sched::GpuView>& devices);

// An operator's word about the GPU with this UUID, or null.
const proto::DrainedGpu* drained_gpu(const Node& node, const std::string& uuid);

// Of an UpdateNodes that names GPUs: drains or resumes them, all or nothing, and answers.
void update_gpus(Context& ctx, const ClientRequest& from, const proto::UpdateNodes& m);

// Whole ones, were all in order: what a job may ask for, though it may have to wait.
std::uint32_t gpus_when_well(const Node& node);

// May jobs of one tenant share GPUs of the node?
bool shares_gpus(const Node& node);

// Why the node cannot give these devices to this tenant, or nothing: one that is not there or not
// sound, one that is held, a part of a GPU that another tenant has parts of, a slice that does not
// lie where its profile may, or not the devices that `gpus` counts.
std::optional<std::string> gpu_objection(const Node& node, const sched::NodeGrant& grant,
                                         PartitionId tenant);

// apply() only. Giving what is held, or taking back what is not, is our bug.
void take_gpus(Node& node, const sched::NodeGrant& grant, PartitionId tenant);
void give_gpus(Node& node, const sched::NodeGrant& grant, PartitionId tenant);

GpuThousandths gpu_thousandths_taken(const Node& node);

// Held devices that overlap, or are shared by two tenants, or nothing; for audit().
std::optional<std::string> gpus_held_twice(const Node& node);

// What follows from faults that the node tells of: every job on a device that has one ends, those
// that may are requeued; a fault of the whole node drains it, and it is open again when the node
// has none any more, unless somebody has changed the reason meanwhile.
void act_on_faults(Context& ctx, NodeId node);

// "7 of 8 GPUs; GPU 3: gpu-xid-79: fallen off the bus since ...", or "": nothing is wrong.
std::string gpu_trouble(const Node& node);

}  // namespace gantry::core
