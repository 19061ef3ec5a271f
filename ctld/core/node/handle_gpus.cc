// Taking single GPUs of nodes out of service and back, at an operator's request.
#include <algorithm>

#include <fmt/core.h>

#include "common/proto/cluster.h"
#include "common/proto/node_order.h"
#include "common/proto/session.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_cluster.h"
#include "ctld/core/handler.h"
#include "ctld/core/job/submit/validate.h"
#include "ctld/core/node_links.h"
#include "ctld/core/request.h"
#include "ctld/core/resources/gpus.h"
#include "ctld/core/runtime.h"
#include "ctld/core/settle.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

using proto::NodeAction;

struct Named {
  NodeId node{};
  std::string uuid;
  bool drained = false;  // an operator drained the GPU
  bool failed = false;   // the GPU's node reports a fault
};

// Finds a GPU by its number, by its UUID, or by the UUID of one of its slices.
const GpuDevice* gpu_called(const Node& node, const std::string& name) {
  for (const GpuDevice& gpu : node.facts.gpus.gpus) {
    if (name == gpu.uuid || name == std::to_string(gpu.index)) return &gpu;
    for (const MigSlice& slice : gpu.slices)
      if (name == slice.uuid) return &gpu;
  }
  return nullptr;
}

Result<Named> named(const Node& node, const std::string& name) {
  const GpuDevice* found = gpu_called(node, name);
  // A drained GPU may have been removed from the machine.
  if (found == nullptr && drained_gpu(node, name) == nullptr)
    return fail(ErrorCode::not_found, fmt::format("node {} has no GPU {}", node.name, name));
  Named out{node.id, found == nullptr ? name : found->uuid};
  out.drained = drained_gpu(node, out.uuid) != nullptr;
  out.failed = found != nullptr &&
               std::any_of(found->faults.begin(), found->faults.end(),
                           [](const GpuFault& f) { return f.domain != FaultDomain::none; });
  return out;
}

// An error if the GPU cannot be resumed.
Result<void> may_resume(const Context& ctx, const Named& gpu, const std::string& name) {
  const Node& node = ctx.state.node(gpu.node);
  if (!gpu.drained && !gpu.failed)
    return fail(ErrorCode::wrong_state, fmt::format("GPU {} of {} is in service", name, node.name));
  if (gpu.failed && ctx.link(gpu.node).session == 0)
    return fail(ErrorCode::wrong_state, fmt::format("node {} does not answer", node.name));
  return {};
}

void resume(Context& ctx, const Named& gpu, const std::string& by) {
  const std::string& node = ctx.state.node(gpu.node).name;
  if (gpu.drained) {
    ctx.note(fmt::format("GPU {} of node {} is put back into service by {}", gpu.uuid, node, by));
    ctx.record(event::GpuResumed{gpu.node, gpu.uuid});
  }
  if (!gpu.failed) return;
  ctx.note(fmt::format("GPU {} of node {} is said to be well by {}", gpu.uuid, node, by));
  ctx.send(gpu.node, proto::ResumeGpu{ctx.stamp(gpu.node), gpu.uuid});
}

void drain(Context& ctx, const Named& gpu, const std::string& reason, const std::string& by) {
  ctx.note(fmt::format("GPU {} of node {} is drained by {}: {}", gpu.uuid,
                       ctx.state.node(gpu.node).name, by, reason));
  ctx.record(event::GpuDrained{gpu.node, gpu.uuid, reason, by});
}

}  // namespace

void update_gpus(Context& ctx, const ClientRequest& from, const proto::UpdateNodes& m) {
  const bool drains = m.action == NodeAction::drain;
  if (!drains && m.action != NodeAction::resume)
    return refuse(
        ctx, from,
        {ErrorCode::invalid_argument, "single GPUs can be drained and resumed, and nothing else"});
  if (drains && m.reason.empty())
    return refuse(ctx, from, {ErrorCode::invalid_argument, "give a reason for drain"});
  if (auto r = check_text("the reason", m.reason, kMaxCommentBytes); !r)
    return refuse(ctx, from, r.error());
  std::vector<Named> wanted;
  for (const std::string& name : m.nodes) {
    const Node* node = ctx.state.node_named(name);
    if (node == nullptr)
      return refuse(ctx, from,
                    {ErrorCode::not_found, fmt::format("there is no node \"{}\"", name)});
    for (const std::string& gpu : m.gpus) {
      const auto found = named(*node, gpu);
      if (!found) return refuse(ctx, from, found.error());
      const bool twice = std::any_of(wanted.begin(), wanted.end(), [&](const Named& w) {
        return w.node == found->node && w.uuid == found->uuid;
      });
      if (twice) continue;  // named twice, for example by two of its slices
      if (auto may = drains ? Result<void>{} : may_resume(ctx, *found, gpu); !may)
        return refuse(ctx, from, may.error());
      wanted.push_back(*found);
    }
  }
  const std::string& by = from.who.owner.user;
  for (const Named& gpu : wanted)
    if (drains)
      drain(ctx, gpu, m.reason, by);
    else
      resume(ctx, gpu, by);
  ctx.reply(from, proto::Ok{});
}

}  // namespace gantry::core
