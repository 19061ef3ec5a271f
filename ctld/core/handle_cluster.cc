// Nodes, partitions, keys and the controller itself.
#include <algorithm>

#include <fmt/core.h>

#include "common/version.h"
#include "config/options.h"
#include "ctld/core/authorise.h"
#include "ctld/core/gpus.h"
#include "ctld/core/handlers.h"
#include "ctld/core/racks.h"
#include "ctld/core/settle.h"
#include "ctld/core/sight.h"
#include "ctld/core/validate.h"

namespace gantry::core {
namespace {

// Names of the partitions that the asker sees, by node; and the window that each node is in now, a
// maintenance window first. Made once for a request.
struct Places {
  std::vector<std::vector<PartitionId>> partitions;
  std::vector<const Reservation*> windows;
};

Places places_of(const Context& ctx, const Sight& sight) {
  Places out;
  out.partitions.resize(ctx.state.nodes.size());
  out.windows.resize(ctx.state.nodes.size(), nullptr);
  for (const PartitionId id : ctx.state.partition_order) {
    const Partition& p = ctx.state.partition(id);
    if (!sight.partition(p)) continue;
    for (const NodeId node : p.nodes) out.partitions[node.value()].push_back(id);
  }
  for (const auto& [name, r] : ctx.state.tenancy.reservations) {
    if (ctx.now < r.from || r.until <= ctx.now) continue;
    for (const NodeId node : r.nodes) {
      const Reservation*& window = out.windows[node.value()];
      if (window == nullptr || (r.maintenance && !window->maintenance)) window = &r;
    }
  }
  return out;
}

proto::NodeRow node_row(const Context& ctx, const Sight& sight, const Places& places,
                        const Node& node) {
  const NodeLink& link = ctx.link(node.id);
  proto::NodeRow row;
  row.name = node.name;
  row.address = node.facts.address;
  row.health = node.health;
  row.intent = node.intent;
  row.reason = node.reason;
  row.reason_by = node.reason_by;
  row.since = node.since;
  for (const PartitionId id : places.partitions[node.id.value()])
    row.partitions.push_back(ctx.state.partition(id).name);
  if (node.declared != nullptr) {
    row.features = node.declared->features;
    row.total.set<Resource::cpu>(thousandths_of(Cores{std::ssize(node.cpus)}));
    row.total.set<Resource::memory>(ByteCount{node.declared->memory});
    row.total.set<Resource::gpu>(thousandths_of(Gpus{node.declared->gpus}));
    row.total.set<Resource::scratch>(ByteCount{node.declared->scratch});
  }
  row.allocated.set<Resource::cpu>(thousandths_of(Cores{node.cpus_taken}));
  row.allocated.set<Resource::memory>(ByteCount{node.memory_taken});
  row.allocated.set<Resource::gpu>(gpu_thousandths_taken(node));
  row.allocated.set<Resource::scratch>(ByteCount{node.scratch_taken});
  row.jobs = static_cast<std::uint32_t>(node.jobs.size());
  row.version = node.facts.version;
  row.runtime = node.facts.runtime;
  row.layers_off = node.facts.layers_off;
  if (link.session != 0) row.last_seen = link.last_seen;
  row.booted = node.facts.booted;
  row.load = link.load;
  row.free_memory = link.free_memory;
  row.sockets = node.facts.sockets;
  row.cores_per_socket = node.facts.cores_per_socket;
  row.threads_per_core = node.facts.threads_per_core;
  row.gpu_trouble = gpu_trouble(node);
  if (const Reservation* window = places.windows[node.id.value()]) {
    row.reservation = sight.reservation(*window) ? window->name : "others";
    row.maintenance = window->maintenance;
  }
  return row;
}

void add_activity(const State& state, const Reach& reach, const NodeLink& link,
                  proto::NodeRow& row) {
  for (const proto::GpuActivity& gpu : link.gpus) {
    const Job* found = state.jobs.find(gpu.key.job);
    if (found == nullptr || found->attempt != gpu.key.attempt || !found->placed()) continue;
    const Job& job = *found;
    if (!reach.may(May::see, state, job)) continue;
    row.top.push_back({job.id, display_id(state, job), state.names.text(job.user),
                       state.partition(class_of(state, job).partition).payer(), gpu.gpu, gpu.name,
                       gpu.busy, gpu.memory_mib, gpu.of_memory_mib, gpu.power_w, gpu.idle,
                       gpu.has_process});
  }
}

void add_gpus(const State& state, const Reach& reach, const Node& node, proto::NodeRow& row) {
  row.gpus = node.facts.gpus;
  row.drained_gpus = node.drained_gpus;
  for (const JobId id : node.jobs) {
    const Job& job = state.jobs.at(id);
    const bool seen = reach.may(May::see, state, job);
    for (const NodeRun& run : job.active->nodes) {
      if (run.grant.node != node.id || run.state == RunState::released) continue;
      for (const GpuGrant& d : run.grant.devices)
        row.holders.push_back(
            {d, seen ? id : JobId{},
             seen ? state.partition(class_of(state, job).partition).payer() : ""});
    }
  }
}

proto::PartitionRow partition_row(const Sight& sight, const Partition& p) {
  const PartitionConfig& c = *p.declared;
  proto::PartitionRow row;
  row.name = p.name;
  row.is_default = c.is_default;
  row.up = p.up();
  row.nodes = sight.names_of(p.nodes);
  row.priority = c.priority;
  row.default_time = c.default_time;
  row.max_time = c.max_time;
  row.max_nodes = c.max_nodes;
  row.default_memory_per_cpu = c.default_memory_per_cpu.value_or(0);
  row.allow_host_network = c.allow_host_network;
  row.allow_accounts = c.allow_accounts;
  row.deny_accounts = c.deny_accounts;
  row.allow_groups = c.allow_groups;
  row.allow_qos = c.allow_qos;
  row.deny_qos = c.deny_qos;
  return row;
}

// What an UpdateNodes is about, and the reason there: one for the nodes that it names, or one for
// each domain of the topology.
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
    auto domain = domain_nodes(state, name);
    if (!domain) return tl::unexpected(domain.error());
    out.push_back({std::move(domain->nodes), fmt::format("{}: {}", domain->title, m.reason)});
  }
  return out;
}

void update_node(Context& ctx, const Node& node, proto::NodeAction action,
                 const std::string& reason, const std::string& by) {
  const NodeId id = node.id;
  switch (action) {
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
      ctx.rt.links.at(id.value()).session = 0;
      if (node.health != NodeHealth::down)
        ctx.record(event::NodeHealthChanged{id, NodeHealth::down,
                                            fmt::format("declared dead by {}: {}", by, reason)});
      release_all(
          ctx, id, proto::ExitCause::fenced,
          fmt::format("{} was declared dead by {}: {}", ctx.state.node(id).name, by, reason));
      return;
  }
}

}  // namespace

void handle(Context& ctx, const ClientRequest& from, proto::ListNodes&& m) {
  const Sight sight(ctx.state, from.who);
  proto::ListNodesReply reply;
  reply.now = ctx.now;
  for (const std::string& name : m.nodes)
    if (sight.node_named(name) == nullptr) return refuse(ctx, from, no_such_node(name));
  std::sort(m.nodes.begin(), m.nodes.end());
  const Places places = places_of(ctx, sight);
  std::vector<bool> asked(ctx.state.partitions.size(), false);
  for (const std::string& name : m.partitions)
    if (const Partition* p = ctx.state.partition_named(name)) asked[p->id.value()] = true;
  for (const NodeId id : ctx.state.node_order) {
    const Node& node = ctx.state.node(id);
    if (!sight.node(id)) continue;
    if (!m.nodes.empty() && !std::binary_search(m.nodes.begin(), m.nodes.end(), node.name))
      continue;
    const auto& in = places.partitions[id.value()];
    if (!m.partitions.empty() &&
        std::none_of(in.begin(), in.end(), [&](PartitionId p) { return asked[p.value()]; }))
      continue;
    proto::NodeRow row = node_row(ctx, sight, places, node);
    if (m.gpus) add_gpus(ctx.state, sight.jobs(), node, row);
    if (m.gpus) add_activity(ctx.state, sight.jobs(), ctx.link(id), row);
    reply.nodes.push_back(std::move(row));
  }
  ctx.reply(from, std::move(reply));
}

void handle(Context& ctx, const ClientRequest& from, proto::UpdateNodes&& m) {
  if (m.nodes.empty() == m.domains.empty())
    return refuse(
        ctx, from,
        {ErrorCode::invalid_argument,
         m.nodes.empty() ? "name at least one node" : "name nodes or racks, not both at once"});
  if (!m.gpus.empty() && !m.domains.empty())
    return refuse(ctx, from, {ErrorCode::invalid_argument, "name the nodes of the GPUs"});
  if (!m.gpus.empty()) return update_gpus(ctx, from, m);
  if (m.action != proto::NodeAction::resume && m.reason.empty())
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
      // While it answers, its jobs are ended by cancelling them.
      if (m.action == proto::NodeAction::dead && node.health == NodeHealth::up &&
          ctx.link(id).session != 0)
        return refuse(
            ctx, from,
            {ErrorCode::wrong_state, fmt::format("node {} answers: it is not dead", node.name)});
    }
  for (const Target& some : *all)
    for (const NodeId id : some.nodes)
      update_node(ctx, ctx.state.node(id), m.action, some.reason, from.who.owner.user);
  ctx.reply(from, proto::Ok{});
}

void handle(Context& ctx, const ClientRequest& from, proto::ListPartitions&&) {
  const Sight sight(ctx.state, from.who);
  proto::ListPartitionsReply reply;
  for (const PartitionId id : ctx.state.partition_order)
    if (const Partition& p = ctx.state.partition(id); sight.partition(p))
      reply.partitions.push_back(partition_row(sight, p));
  for (const auto& [name, license] : ctx.state.licenses)
    if (license.total > 0 || license.used > 0)
      reply.licenses.push_back({name, license.total, license.used});
  ctx.reply(from, std::move(reply));
}

void handle(Context& ctx, const ClientRequest& from, proto::UpdatePartition&& m) {
  const Partition* partition = ctx.state.partition_named(m.name);
  if (partition == nullptr || partition->declared == nullptr)
    return refuse(ctx, from,
                  {ErrorCode::not_found, fmt::format("there is no partition \"{}\"", m.name)});
  if (partition->up() != m.up) {
    ctx.record(event::PartitionUpChanged{partition->id, m.up});
    for (const Partition& p : ctx.state.partitions) {  // and what tenants have in it
      if (p.name != m.name) continue;
      ctx.rt.partition_views[p.id.value()] = partition_view(ctx.state, p);
      ctx.turn.changes.emplace_back(ctx.rt.partition_views[p.id.value()]);
    }
    ctx.turn.schedule = true;
  }
  ctx.reply(from, proto::Ok{});
}

void handle(Context& ctx, const ClientRequest& from, proto::ShowConfig&&) {
  ctx.reply(from, proto::ShowConfigReply{is_operator(ctx.state, from.who)
                                             ? describe(ctx.config)
                                             : config::describe_for_users(ctx.config)});
}

void handle(Context& ctx, const ClientRequest& from, proto::EnrollNode&& m) {
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
    ctx.rt.links.at(id.value()).session = 0;  // whoever spoke for it so far does no more
    ctx.record(event::NodeEnrolled{id, m.public_key});
  }
  ctx.reply(from, proto::Ok{});
}

void handle(Context& ctx, const ClientRequest& from, proto::RegisterKey&& m) {
  const bool own = m.user == from.who.owner.user && !from.who.inside;
  if (!own && !is_admin(from.who))
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

void handle(Context& ctx, const ClientRequest& from, proto::ShowStats&&) {
  const Stats& s = ctx.rt.stats;
  const auto n = [](std::uint64_t v) { return static_cast<std::int64_t>(v); };
  proto::ShowStatsReply reply;
  reply.values = {{"submits_total", n(s.submits)},
                  {"events_total", n(s.events)},
                  {"jobs_ended_total", n(s.ended)},
                  {"jobs_completed_total", n(s.completed)},
                  {"jobs_cancelled_total", n(s.cancelled)},
                  {"jobs_failed_total", n(s.failed)},
                  {"plans_total", n(s.plans)},
                  {"plan_classes_total", n(s.classes)},
                  {"plan_us_last", s.plan_last.us},
                  {"plan_us_most", s.plan_most.us},
                  {"plan_us_total", s.plan_all.us},
                  {"backfilled_total", n(s.backfilled)},
                  {"starts_total", n(s.starts)},
                  {"plan_drops_total", n(s.plan_drops)},
                  {"reports_ignored_total", n(s.reports_ignored)},
                  {"orders_total", n(s.orders)},
                  {"refused_total", n(s.refused)},
                  {"jobs_queued", n(ctx.state.counters.queued)},
                  {"jobs_active", n(ctx.state.counters.active)},
                  {"jobs_known", n(ctx.state.jobs.size())},
                  {"waits", n(ctx.rt.waits.size())}};
  ctx.reply(from, std::move(reply));
}

void handle(Context& ctx, const ClientRequest& from, proto::Ping&&) {
  proto::PingReply reply;
  reply.cluster = ctx.config.cluster;
  reply.version = kVersion;
  reply.epoch = ctx.state.epoch;
  reply.now = ctx.now;
  reply.started = ctx.rt.started;
  reply.jobs_queued = ctx.state.counters.queued;
  reply.jobs_active = ctx.state.counters.active;
  for (const NodeId id : ctx.state.node_order) {
    const Node& node = ctx.state.node(id);
    ++reply.nodes;
    if (node.health == NodeHealth::up && ctx.link(id).session != 0) ++reply.nodes_up;
  }
  ctx.reply(from, std::move(reply));
}

}  // namespace gantry::core
