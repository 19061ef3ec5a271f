// ProbeNetwork: what a job's network on one of its nodes reaches. The node looks, and tries an
// address from within the job's namespace; the request waits under a ticket until it answers.
#include <algorithm>

#include <fmt/core.h>

#include "common/codec/codec.h"
#include "common/proto/job_network.h"
#include "common/proto/job_ref.h"
#include "common/proto/session.h"
#include "common/text/network_range.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/access/select.h"
#include "ctld/core/context.h"
#include "ctld/core/handler.h"
#include "ctld/core/job/memory.h"
#include "ctld/core/job/subject.h"
#include "ctld/core/node_links.h"
#include "ctld/core/request.h"
#include "ctld/core/runtime.h"
#include "ctld/core/settle.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/network.h"
#include "ctld/core/turn_out.h"

namespace gantry::core {
namespace {

constexpr std::size_t kMostProbes = 1'000, kMostUserProbes = 8, kMostTarget = 300;

Result<void> check_room_to_probe(const Context& ctx, const Identity& who) {
  const auto own = std::count_if(ctx.rt.job->probes.begin(), ctx.rt.job->probes.end(),
                                 [&](const auto& e) { return e.second.uid == who.owner.uid; });
  if (static_cast<std::size_t>(own) >= kMostUserProbes)
    return fail(ErrorCode::too_many,
                fmt::format("{} waits for {} answers about networks, as many as one user may: try "
                            "again later",
                            who.owner.user, own));
  if (ctx.rt.job->probes.size() >= kMostProbes)
    return fail(ErrorCode::unavailable, "too many requests about networks at once");
  return {};
}

// The running job that the reference names.
Result<const Job*> running(const State& state, const Identity& who, const proto::JobRef& ref) {
  std::vector<proto::JobRef> unknown;
  const std::vector<Selected> found = resolve(state, who, {ref}, unknown, May::change);
  if (found.empty())
    return fail(ErrorCode::not_found, fmt::format("there is no job {}", ref.job.value()));
  const Job& job = state.jobs.at(found.front().job);
  if (found.size() > 1 && !class_of(state, job).het)
    return fail(ErrorCode::invalid_argument,
                fmt::format("job {} is an array: name one task, as {}_0", ref.job.value(),
                            ref.job.value()));
  if (!job.active || !job.started)
    return fail(ErrorCode::wrong_state,
                fmt::format("job {} does not run: it has no network", display_id(state, job)));
  return &job;
}

// "HOST:PORT", where HOST is an address or a name; the node knows which names the job has.
Result<void> check_target(const std::string& target) {
  if (target.empty()) return {};
  const auto colon = target.rfind(':');
  const bool whole =
      colon != std::string::npos && colon > 0 && target.size() <= kMostTarget &&
      std::all_of(target.begin(), target.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (whole && parse_ports("tcp/" + target.substr(colon + 1)) &&
      target.find('-', colon) == std::string::npos)
    return {};
  return fail(
      ErrorCode::invalid_argument,
      fmt::format("\"{:.80}\" is not HOST:PORT, such as 10.1.0.7:443 or [fd00::1]:443", target));
}

proto::ErrorReply no_answer(const Context& ctx, NodeId node) {
  return {static_cast<std::uint16_t>(ErrorCode::unavailable),
          fmt::format("node {} does not answer", ctx.state.node(node).name)};
}

}  // namespace

static void handle(Context& ctx, const ClientRequest& from, proto::ProbeNetwork&& message) {
  const auto found = running(ctx.state, from.who, message.job);
  if (!found) return refuse(ctx, from, found.error());
  const Job& job = **found;
  if (auto r = check_target(message.target); !r) return refuse(ctx, from, r.error());
  if (auto r = check_room_to_probe(ctx, from.who); !r) return refuse(ctx, from, r.error());
  const auto& nodes = job.active->nodes;
  const auto run = std::find_if(nodes.begin(), nodes.end(), [&](const NodeRun& one) {
    return message.node.empty() || ctx.state.node(one.grant.node).name == message.node;
  });
  if (run == nodes.end())
    return refuse(ctx, from,
                  {ErrorCode::not_found, fmt::format("job {} has no node {:.64}",
                                                     display_id(ctx.state, job), message.node)});
  const NodeId node = run->grant.node;
  if (ctx.link(node).session == 0) {
    ctx.turn.replies.push_back({from.connection, from.request, no_answer(ctx, node)});
    return;
  }
  const std::uint64_t ticket = ctx.rt.job->next_ticket++;
  ctx.rt.job->probes.emplace(
      ticket, ProbeRequest{from.connection, from.request, from.who.owner.uid, job.id, node});
  ctx.send(node, proto::ProbeAttempt{ticket, {job.id, job.attempt}, std::move(message.target)});
}

void drop_probes(Context& ctx, NodeId node) {
  std::erase_if(ctx.rt.job->probes, [&](const auto& entry) {
    if (entry.second.node != node) return false;
    ctx.turn.replies.push_back(
        {entry.second.connection, entry.second.request, no_answer(ctx, node)});
    return true;
  });
}

static void handle(Context& ctx, NodeId node, proto::AttemptProbed&& answer) {
  const auto it = ctx.rt.job->probes.find(answer.ticket);
  if (it == ctx.rt.job->probes.end() || it->second.node != node) {
    ++ctx.rt.stats.reports_ignored;
    return;
  }
  const ProbeRequest request = it->second;
  ctx.rt.job->probes.erase(it);
  if (!answer.error.empty()) {
    proto::ErrorReply error{static_cast<std::uint16_t>(ErrorCode::unavailable),
                            fmt::format("node {}: {}", ctx.state.node(node).name, answer.error)};
    ctx.turn.replies.push_back({request.connection, request.request, std::move(error)});
    return;
  }
  proto::NetworkProbed reply;
  reply.job = request.job;
  reply.node = ctx.state.node(node).name;
  reply.network = std::move(answer.network);
  for (const auto& group : reply.network.reach.to)
    reply.to_tenants.push_back(tenant_of_group(ctx.state, group.group));
  for (const auto& group : reply.network.reach.from)
    reply.from_tenants.push_back(tenant_of_group(ctx.state, group.group));
  ctx.turn.replies.push_back({request.connection, request.request, std::move(reply)});
}

const Subject kNetworkMessages{.name = "network",
                               .handlers = kHandlers<proto::ProbeNetwork, proto::AttemptProbed>};

}  // namespace gantry::core
