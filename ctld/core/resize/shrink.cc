#include "ctld/core/resize/shrink.h"

#include <algorithm>
#include <csignal>

#include <fmt/core.h>

#include "common/job/verdict_text.h"
#include "common/proto/job_change.h"
#include "common/proto/node_order.h"
#include "ctld/core/context.h"
#include "ctld/core/limits/limits.h"
#include "ctld/core/node_links.h"
#include "ctld/core/runtime.h"
#include "ctld/core/state/record.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/shares.h"

namespace gantry::core {
namespace {

tl::unexpected<Error> refused(const State& state, const Job& job, const std::string& why) {
  return fail(ErrorCode::wrong_state, fmt::format("job {} {}", display_id(state, job), why));
}

bool asks_for_more_than_nodes(const proto::Reshape& w) {
  return w.tasks || w.cpus_per_task || w.memory_per_node || w.memory_per_cpu || w.constraint ||
         w.excluded_nodes;
}

// The nodes that stay, in rank order.
Result<std::vector<const NodeRun*>> kept(const State& state, const Job& job,
                                         const proto::Reshape& wanted) {
  std::vector<const NodeRun*> has, out;
  for (const NodeRun& run : job.active->nodes)
    if (!run.given_back) has.push_back(&run);
  const auto count = static_cast<std::uint32_t>(has.size());
  const std::string now = counted(count, "node");
  if (wanted.required_nodes) {
    for (const std::string& name : *wanted.required_nodes)
      if (std::none_of(has.begin(), has.end(), [&](const NodeRun* run) {
            return state.node(run->grant.node).name == name;
          }))
        return refused(state, job, fmt::format("runs without node {}: it cannot grow", name));
    for (const NodeRun* run : has)
      if (std::find(wanted.required_nodes->begin(), wanted.required_nodes->end(),
                    state.node(run->grant.node).name) != wanted.required_nodes->end())
        out.push_back(run);
    if (out.empty() || out.front() != has.front())
      return refused(state, job,
                     fmt::format("needs its first node, {}: it cannot give this one back",
                                 state.node(has.front()->grant.node).name));
    if (wanted.min_nodes && *wanted.min_nodes != out.size())
      return refused(state, job,
                     fmt::format("cannot keep {} and exactly {}",
                                 counted(*wanted.min_nodes, "node"), out.size()));
    return out;
  }
  if (*wanted.min_nodes > count)
    return refused(state, job, fmt::format("runs on {}: it cannot grow", now));
  if (*wanted.min_nodes == 0)
    return refused(state, job, "needs its first node, so that it keeps one at least");
  has.resize(*wanted.min_nodes);
  return has;
}

}  // namespace

Result<event::NodesGivenBack> shrink(const State& state, const Job& job,
                                     const proto::Reshape& wanted) {
  if (asks_for_more_than_nodes(wanted) || (!wanted.min_nodes && !wanted.required_nodes))
    return refused(state, job,
                   "runs: of its size only the number of nodes can change, and only to fewer");
  if (job.active->suspended) return refused(state, job, "is suspended: resume it first");
  if (class_of(state, job).het)
    return refused(state, job, "is a component of a heterogeneous job: its size cannot change");
  ASSIGN(stay, kept(state, job, wanted));
  event::NodesGivenBack e;
  e.job = job.id;
  std::vector<sched::NodeGrant> grants;
  for (const NodeRun* run : *stay) grants.push_back(run->grant);
  for (const NodeRun& run : job.active->nodes)
    if (!run.given_back && std::find(stay->begin(), stay->end(), &run) == stay->end())
      e.nodes.push_back(run.grant.node);
  e.use = use_of_job(state, job, grants);
  e.charge = charge_of(state, grants) * static_cast<double>(e.use.factor) /
             static_cast<double>(tenancy::kUsageFactorUnit);
  return e;
}

void end_steps_on(Context& ctx, const Job& job, const std::vector<NodeId>& nodes) {
  if (job.no_kill) return;
  const auto gone = [&](NodeId node) {
    return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
  };
  for (const StepState& step : job.active->steps) {
    if (step.ended || std::none_of(step.nodes.begin(), step.nodes.end(), gone)) continue;
    for (const NodeId node : step.nodes)
      if (!gone(node) && ctx.link(node).session != 0)
        ctx.send(node, proto::SignalAttempt{ctx.stamp(node),
                                            {job.id, job.attempt},
                                            SIGKILL,
                                            proto::SignalScope::steps,
                                            step.id});
  }
}

}  // namespace gantry::core
