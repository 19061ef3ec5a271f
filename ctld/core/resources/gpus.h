// GPUs of nodes: which of them jobs may use, who holds which, and which jobs a fault ends.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/proto/cluster.h"
#include "common/proto/gpu_rows.h"
#include "ctld/core/context.h"
#include "ctld/core/request.h"
#include "ctld/sched/change.h"

namespace gantry::core {

struct Node;

// The GPUs of a node that jobs may use: sound ones that the node's daemon found and that are not
// drained, at most as many as the configuration declares. A node whose runtime does not list
// devices (runtime none) has the declared ones.
std::vector<sched::GpuView> gpus_for_jobs(const Node& node);
// Counts the devices that are not in MIG mode.
std::uint32_t whole_gpus(const std::vector<sched::GpuView>& devices);

// The drain of the GPU with this UUID by an operator, or null.
const proto::DrainedGpu* drained_gpu(const Node& node, const std::string& uuid);

// Answers an UpdateNodes that names GPUs: drains or resumes all of them, or none.
void update_gpus(Context& ctx, const ClientRequest& from, const proto::UpdateNodes& m);

// The number of whole GPUs if all were sound. A job may ask for that many, though it may have to
// wait.
std::uint32_t gpus_when_well(const Node& node);

// True if jobs of one tenant may share GPUs of the node.
bool shares_gpus(const Node& node);

// Why the node cannot give these devices to this tenant, or nullopt. Reasons: a device is missing
// or not sound; it is held; another tenant has parts of the same GPU; a slice is at a place that
// its profile does not allow; or the number of devices is not what `gpus` demands.
std::optional<std::string> gpu_objection(const Node& node, const sched::NodeGrant& grant,
                                         PartitionId tenant);

// For apply() only. Asserts when taking what is held, or releasing what is not held.
void take_gpus(Node& node, const sched::NodeGrant& grant, PartitionId tenant);
void give_gpus(Node& node, const sched::NodeGrant& grant, PartitionId tenant);

GpuThousandths gpu_thousandths_taken(const Node& node);

// Held devices that overlap or that two tenants share; nullopt if there are none. For audit().
std::optional<std::string> gpus_held_twice(const Node& node);

// Acts on faults that the node reports. Every job on a faulty device ends, and is requeued if it
// may be. A fault of the whole node drains it; when the fault is gone, the node is resumed, unless
// somebody has changed the reason meanwhile.
void act_on_faults(Context& ctx, NodeId node);

// For example "7 of 8 GPUs; GPU 3: gpu-xid-79: fallen off the bus since ..."; "" = nothing is
// wrong.
std::string gpu_trouble(const Node& node);

}  // namespace gantry::core
