// Handlers about nodes, keys and the controller itself.
#include <algorithm>

#include <fmt/core.h>

#include "common/proto/cluster.h"
#include "common/proto/control.h"
#include "common/proto/node_report.h"
#include "common/proto/session.h"
#include "common/version.h"
#include "config/config.h"
#include "config/options.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/access/sight.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_cluster.h"
#include "ctld/core/figures.h"
#include "ctld/core/handler.h"
#include "ctld/core/job/memory.h"
#include "ctld/core/job/submit/validate.h"
#include "ctld/core/node/enrollment.h"
#include "ctld/core/node/racks.h"
#include "ctld/core/node/subject.h"
#include "ctld/core/node_links.h"
#include "ctld/core/recorder.h"
#include "ctld/core/request.h"
#include "ctld/core/resources/gpus.h"
#include "ctld/core/runtime.h"
#include "ctld/core/settle.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/tenants.h"

namespace gantry::core {
namespace {

constexpr std::size_t kMaxOptions = 2000;   // in one page of ShowConfig
constexpr std::size_t kMostFeatures = 256;  // of one node, by an operator

// The nodes that an UpdateNodes is about, each group with its reason: one Target for the nodes that
// it names, or one for each domain of the topology.
struct Target {
  std::vector<NodeId> nodes;
  std::string reason;
};
Result<std::vector<Target>> targets_of(const State& state, const proto::UpdateNodes& m) {
  std::vector<Target> out;
  if (!m.nodes.empty()) out.push_back({{}, m.reason});
  for (const std::string& name : m.nodes) {
    const Node* node = state.node_named(name);
    if (node == nullptr) return tl::unexpected(no_such_node(name));
    out.back().nodes.push_back(node->id);
  }
  for (const std::string& name : m.domains) {
    ASSIGN(domain, domain_nodes(state, name));
    out.push_back({std::move(domain->nodes), m.reason.empty()
                                                 ? std::string()
                                                 : fmt::format("{}: {}", domain->title, m.reason)});
  }
  return out;
}

void update_node(Context& ctx, const Node& node, proto::NodeAction action,
                 const std::string& reason, const std::string& by) {
  const NodeId id = node.id;
  switch (action) {
    case proto::NodeAction::keep:
      if (!reason.empty()) ctx.record(event::NodeIntentChanged{id, node.intent, reason, by});
      return;
    case proto::NodeAction::resume:
      ctx.record(event::NodeIntentChanged{id, NodeIntent::open, {}, {}});
      return;
    case proto::NodeAction::drain:
      ctx.record(event::NodeIntentChanged{id, NodeIntent::drain, reason, by});
      return;
    case proto::NodeAction::close:
      ctx.record(event::NodeIntentChanged{id, NodeIntent::closed, reason, by});
      return;
    case proto::NodeAction::dead:
      ctx.rt.links->all.at(id.value()).session = 0;
      if (node.health != NodeHealth::down)
        ctx.record(event::NodeHealthChanged{id, NodeHealth::down,
                                            fmt::format("declared dead by {}: {}", by, reason)});
      release_all(
          ctx, id, proto::ExitCause::fenced,
          fmt::format("{} was declared dead by {}: {}", ctx.state.node(id).name, by, reason));
      return;
  }
}

// Checks the request apart from the state that it asks for, and turns it into the event.
Result<void> check_notes(proto::UpdateNodes& m) {
  if (m.features && m.file_features)
    return fail(ErrorCode::invalid_argument, "features are either given or those of gantry.yaml");
  const bool notes = m.features || m.file_features || m.comment;
  if (m.action == proto::NodeAction::keep && !notes && m.reason.empty())
    return fail(ErrorCode::invalid_argument, "say what of the nodes is to change");
  if (notes && !m.gpus.empty())
    return fail(ErrorCode::invalid_argument, "features and comments are of nodes, not of GPUs");
  if (m.comment)
    if (auto r = check_text("the comment", *m.comment, kMaxCommentBytes); !r) return r;
  if (!m.features) return {};
  NodeConfig named;
  std::vector<config::Option> options = config::options_of(named);
  const auto option = std::find_if(options.begin(), options.end(),
                                   [](const config::Option& o) { return o.name == "features"; });
  if (auto r = config::set_option(*option, *m.features); !r)
    return fail(ErrorCode::invalid_argument, "features: " + r.error().message);
  std::sort(named.features.begin(), named.features.end());
  named.features.erase(std::unique(named.features.begin(), named.features.end()),
                       named.features.end());
  if (named.features.size() > kMostFeatures)
    return fail(ErrorCode::limit_exceeded,
                fmt::format("a node has at most {} features", kMostFeatures));
  m.features = std::move(named.features);
  return {};
}

void note_node(Context& ctx, NodeId id, const proto::UpdateNodes& m) {
  if (m.features || m.file_features || m.comment)
    ctx.record(event::NodeNoted{id, m.features, m.file_features, m.comment});
}

}  // namespace

static void handle(Context& ctx, const ClientRequest& from, proto::UpdateNodes&& m) {
  if (m.nodes.empty() == m.domains.empty())
    return refuse(
        ctx, from,
        {ErrorCode::invalid_argument,
         m.nodes.empty() ? "name at least one node" : "name nodes or racks, not both at once"});
  if (!m.gpus.empty() && !m.domains.empty())
    return refuse(ctx, from, {ErrorCode::invalid_argument, "name the nodes of the GPUs"});
  if (auto r = check_notes(m); !r) return refuse(ctx, from, r.error());
  if (!m.gpus.empty()) return update_gpus(ctx, from, m);
  const bool owes_reason =
      m.action != proto::NodeAction::resume && m.action != proto::NodeAction::keep;
  if (owes_reason && m.reason.empty())
    return refuse(
        ctx, from,
        {ErrorCode::invalid_argument, fmt::format("give a reason for {}", enum_name(m.action))});
  if (auto r = check_text("the reason", m.reason, kMaxCommentBytes); !r)
    return refuse(ctx, from, r.error());
  const auto all = targets_of(ctx.state, m);
  if (!all) return refuse(ctx, from, all.error());
  for (const Target& some : *all)
    for (const NodeId id : some.nodes) {
      const Node& node = ctx.state.node(id);
      // A node that answers is not declared dead: its jobs can be cancelled.
      if (m.action == proto::NodeAction::dead && node.health == NodeHealth::up &&
          ctx.link(id).session != 0)
        return refuse(
            ctx, from,
            {ErrorCode::wrong_state, fmt::format("node {} answers: it is not dead", node.name)});
    }
  for (const Target& some : *all)
    for (const NodeId id : some.nodes) {
      update_node(ctx, ctx.state.node(id), m.action, some.reason, from.who.owner.user);
      note_node(ctx, id, m);
    }
  if (m.features || m.file_features) {
    ctx.note(fmt::format("features of nodes are changed by {}", from.who.owner.user));
    ctx.recorder.set_features();
    ctx.rt.figures->config_values = describe(ctx.config);
    compile_tenancy(ctx);  // pools and flavors go by features, and the scheduler is told
  }
  ctx.reply(from, proto::Ok{});
}

static void handle(Context& ctx, const ClientRequest& from, proto::ShowConfig&& m) {
  const auto& values = sees_all(ctx.state, from.who) ? ctx.rt.figures->config_values
                                                     : ctx.rt.figures->users_config_values;
  if (!m.after) return ctx.reply(from, proto::ShowConfigReply{values});
  proto::ShowConfigReply reply;
  auto it = m.after->empty() ? values.begin() : values.upper_bound(*m.after);
  for (; it != values.end() && reply.values.size() < kMaxOptions; ++it)
    reply.values.emplace_hint(reply.values.end(), *it);
  reply.page = proto::ConfigPage{it != values.end()};
  ctx.reply(from, std::move(reply));
}

static void handle(Context& ctx, const ClientRequest& from, proto::EnrollNode&& m) {
  if (!m.token_hash.empty() && !token_counts(ctx, m.token_hash, m.node))
    return refuse(ctx, from, {ErrorCode::unauthenticated, std::string(kTokenRefused)});
  const Node* node = ctx.state.node_named(m.node);
  if (node == nullptr || node->declared == nullptr) return refuse(ctx, from, no_such_node(m.node));
  if (m.public_key.size() != 40)
    return refuse(ctx, from, {ErrorCode::invalid_argument, "a node's key has 40 characters (Z85)"});
  if (const auto it = ctx.state.node_keys.find(m.public_key);
      it != ctx.state.node_keys.end() && it->second != node->id)
    return refuse(ctx, from,
                  {ErrorCode::already_exists,
                   fmt::format("this key is node {}'s", ctx.state.node(it->second).name)});
  if (node->public_key != m.public_key) {
    const NodeId id = node->id;
    ctx.rt.links->all.at(id.value()).session = 0;  // the node's old key is not valid any more
    ctx.record(event::NodeEnrolled{id, m.public_key});
  }
  if (!m.token_hash.empty()) ctx.record(event::EnrollTokensGone{{m.token_hash}});
  ctx.reply(from, proto::Ok{});
}

static void handle(Context& ctx, const ClientRequest& from, proto::RegisterKey&& m) {
  if (m.user != from.who.owner.user && !is_admin(from.who))
    return refuse(ctx, from,
                  {ErrorCode::permission_denied,
                   "only an administrator may register a key for somebody else"});
  const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (m.public_key.size() != 64 || !std::all_of(m.public_key.begin(), m.public_key.end(), hex))
    return refuse(ctx, from, {ErrorCode::invalid_argument, "a key has 64 characters, 0-9 and a-f"});
  if (m.user.empty() || m.user.size() > kMaxAccountBytes)
    return refuse(ctx, from, {ErrorCode::invalid_argument, "name the key's user"});
  const auto known = ctx.state.user_keys.find(m.public_key);
  if (known != ctx.state.user_keys.end() && known->second != m.user)
    return refuse(ctx, from,
                  {ErrorCode::already_exists, "this key is registered for another user"});
  if (m.remove && known == ctx.state.user_keys.end())
    return refuse(ctx, from, {ErrorCode::not_found, "this key is not registered"});
  const auto has = std::count_if(ctx.state.user_keys.begin(), ctx.state.user_keys.end(),
                                 [&](const auto& entry) { return entry.second == m.user; });
  const std::uint32_t most = ctx.config.controller.max_user_keys;
  if (!m.remove && known == ctx.state.user_keys.end() && has >= most && !is_admin(from.who))
    return refuse(
        ctx, from,
        {ErrorCode::limit_exceeded,
         fmt::format("{} has {} keys; controller.max_user_keys allows {}", m.user, has, most)});
  if (m.remove)
    ctx.record(event::KeyRegistered{m.public_key, std::nullopt});
  else if (known == ctx.state.user_keys.end())
    ctx.record(event::KeyRegistered{m.public_key, m.user});
  ctx.reply(from, proto::Ok{});
}

namespace {

template <class Calls>
std::vector<proto::CallCount> rows_of_calls(const Calls& calls, const std::string* only = nullptr) {
  std::vector<proto::CallCount> out;
  for (const auto& [name, c] : calls)
    if (only == nullptr || name == *only) out.push_back({name, c.count, c.time});
  return out;
}

}  // namespace

static void handle(Context& ctx, const ClientRequest& from, proto::ShowStats&& m) {
  const Stats& s = ctx.rt.stats;
  const Stats before = m.since_reset ? ctx.rt.figures->before : Stats{};
  const auto n = [](std::uint64_t v) { return static_cast<std::int64_t>(v); };
  const auto counted = [&](std::uint64_t Stats::*which) { return n(s.*which - before.*which); };
  proto::ShowStatsReply reply;
  reply.since = m.since_reset && ctx.rt.figures->reset != Instant{} ? ctx.rt.figures->reset
                                                                    : ctx.rt.figures->started;
  const Duration longest = m.since_reset ? ctx.rt.figures->plan_longest : s.plan_most;
  reply.values = {{"submits_total", counted(&Stats::submits)},
                  {"events_total", counted(&Stats::events)},
                  {"jobs_ended_total", counted(&Stats::ended)},
                  {"jobs_completed_total", counted(&Stats::completed)},
                  {"jobs_cancelled_total", counted(&Stats::cancelled)},
                  {"jobs_failed_total", counted(&Stats::failed)},
                  {"plans_total", counted(&Stats::plans)},
                  {"plan_classes_total", counted(&Stats::classes)},
                  {"plan_us_last", s.plan_last.us},
                  {"plan_us_most", longest.us},
                  {"plan_us_total", (s.plan_all - before.plan_all).us},
                  {"backfilled_total", counted(&Stats::backfilled)},
                  {"starts_total", counted(&Stats::starts)},
                  {"plan_drops_total", counted(&Stats::plan_drops)},
                  {"reports_ignored_total", counted(&Stats::reports_ignored)},
                  {"orders_total", counted(&Stats::orders)},
                  {"refused_total", counted(&Stats::refused)},
                  {"jobs_queued", n(ctx.state.counters.queued)},
                  {"jobs_active", n(ctx.state.counters.active)},
                  {"jobs_known", n(ctx.state.jobs.size())},
                  {"waits", n(ctx.rt.job->waits.size())}};
  reply.calls = rows_of_calls(ctx.rt.figures->calls);
  reply.callers = rows_of_calls(ctx.rt.figures->callers,
                                sees_all(ctx.state, from.who) ? nullptr : &from.who.owner.user);
  ctx.reply(from, std::move(reply));
}

static void handle(Context& ctx, const ClientRequest& from, proto::ResetStats&&) {
  ctx.rt.figures->before = ctx.rt.stats;
  ctx.rt.figures->reset = ctx.now;
  ctx.rt.figures->plan_longest = {};
  ctx.rt.figures->calls.clear();
  ctx.rt.figures->callers.clear();
  ctx.reply(from, proto::Ok{});
}

static void handle(Context& ctx, const ClientRequest& from, proto::Ping&&) {
  proto::PingReply reply;
  reply.cluster = ctx.config.cluster;
  reply.version = kVersion;
  reply.epoch = ctx.state.epoch;
  reply.now = ctx.now;
  reply.started = ctx.rt.figures->started;
  reply.jobs_queued = ctx.state.counters.queued;
  reply.jobs_active = ctx.state.counters.active;
  for (const NodeId id : ctx.state.node_order) {
    const Node& node = ctx.state.node(id);
    ++reply.nodes;
    if (node.health == NodeHealth::up && ctx.link(id).session != 0) ++reply.nodes_up;
  }
  ctx.reply(from, std::move(reply));
}

const Subject kClusterMessages{
    .name = "cluster",
    .handlers = kHandlers<proto::UpdateNodes, proto::ShowConfig, proto::EnrollNode,
                          proto::RegisterKey, proto::ShowStats, proto::ResetStats, proto::Ping>};

}  // namespace gantry::core
