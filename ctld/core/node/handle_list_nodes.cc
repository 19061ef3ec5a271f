// ListNodes and ListPartitions: the cluster as the asker sees it, page by page.
//
// A page holds the loop for a few milliseconds at most, whatever the number of nodes, partitions
// and tenants, because it ends after a fixed number of rows or names. Rows share the lists that
// have the names of their partitions or nodes (node_sets.h). Commands of earlier releases ask
// without pages: then each row has its names, and the request is refused if the answer does not fit
// into a message.
#include <algorithm>
#include <unordered_map>

#include <fmt/core.h>

#include "common/codec/limits.h"
#include "common/proto/cluster.h"
#include "common/proto/node_report.h"
#include "common/proto/partitions.h"
#include "common/text/hostlist.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/access/sight.h"
#include "ctld/core/context.h"
#include "ctld/core/handler.h"
#include "ctld/core/node/subject.h"
#include "ctld/core/node_links.h"
#include "ctld/core/request.h"
#include "ctld/core/resources/gpus.h"
#include "ctld/core/runtime.h"
#include "ctld/core/settle.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

constexpr std::size_t kPageNodes = 1000;    // rows in one ListNodesReply
constexpr std::size_t kPageGpuNodes = 200;  // rows with GPUs, which are most of a row
constexpr std::size_t kPageQueues = 1000;   // rows in one ListPartitionsReply
constexpr std::size_t kPageNames = 20'000;  // names read for a page; its last list may exceed it
constexpr std::size_t kLeastNodeRow = 60;   // rough bytes of an encoded row without its names
constexpr std::size_t kLeastQueueRow = 20;

Error too_large(std::string_view what) {
  return {ErrorCode::limit_exceeded,
          fmt::format("the list of all {} with their names is larger than a message may be ({} "
                      "MiB): ask for some of them, or use the commands of this release, which read "
                      "it in pages",
                      what, codec::kMaxMessageBytes >> 20)};
}

// The reservation that each node is in now; a maintenance window is preferred.
std::vector<const AdvanceReservation*> windows_of(const Context& ctx) {
  std::vector<const AdvanceReservation*> out(ctx.state.nodes.size(), nullptr);
  for (const auto& [name, r] : ctx.state.tenancy.reservations) {
    if (ctx.now < r.from || r.until <= ctx.now) continue;
    for (const NodeId node : r.nodes) {
      const AdvanceReservation*& window = out[node.value()];
      if (window == nullptr || (r.maintenance && !window->maintenance)) window = &r;
    }
  }
  return out;
}

// A row without the names of its partitions.
proto::NodeRow node_row(const Context& ctx, const Sight& sight, const AdvanceReservation* window,
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
  row.comment = node.comment;
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
  row.sandboxes = node.facts.sandboxes;
  if (link.session != 0) row.last_seen = link.last_seen;
  row.booted = node.facts.booted;
  row.load = link.load;
  row.free_memory = link.free_memory;
  row.sockets = node.facts.sockets;
  row.cores_per_socket = node.facts.cores_per_socket;
  row.threads_per_core = node.facts.threads_per_core;
  row.gpu_trouble = gpu_trouble(node);
  if (window != nullptr) {
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

// A row without the names of its nodes.
proto::PartitionRow partition_row(const Sight& sight, const Partition& p) {
  const PartitionConfig& c = *p.declared;
  proto::PartitionRow row;
  row.name = p.name;
  row.is_default = c.is_default;
  row.up = p.up();
  row.priority = c.priority;
  row.default_time = c.default_time;
  row.max_time = c.max_time;
  row.max_nodes = c.max_nodes;
  row.default_memory_per_cpu = c.default_memory_per_cpu.value_or(0);
  row.allow_host_network = c.allow_host_network;
  row.allow_accounts = sight.accounts(c.allow_accounts);
  row.deny_accounts = sight.accounts(c.deny_accounts);
  row.allow_groups = c.allow_groups;
  row.allow_qos = c.allow_qos;
  row.deny_qos = c.deny_qos;
  row.accepts_jobs = p.accepts_jobs();
  row.exclusive_nodes = c.exclusive_nodes;
  row.min_nodes = c.min_nodes;
  row.admins_only = c.admins_only;
  row.reservation_only = c.reservation_only;
  for (const auto& [name, text] : p.values) row.set_options.push_back(name);
  row.changed_by = p.changed_by;
  row.changed = p.changed;
  row.qos = c.qos;
  row.billing_weights = c.billing_weights;
  return row;
}

// The partitions of a node that the asker may see; found once for each group of nodes.
class SeenPartitions {
 public:
  SeenPartitions(const State& state, const Sight& sight, const std::vector<std::string>& asked)
      : state_(state), sight_(sight), all_(asked.empty()), asked_(state.partitions.size(), false) {
    for (const std::string& name : asked)
      if (const Partition* p = state.partition_named(name)) asked_[p->id.value()] = true;
  }
  struct Names {
    std::vector<PartitionId> partitions;
    std::size_t bytes = 0;              // size of their names
    bool wanted = false;                // whether a partition that was asked for is among them
    std::optional<std::uint32_t> list;  // number of the list in this page
  };
  Names& of(NodeId node) {
    const auto [it, fresh] = groups_.try_emplace(state_.node_sets.group_of(node));
    if (fresh) find(it->first, it->second);
    return it->second;
  }
  [[nodiscard]] std::size_t looked_at() const { return looked_at_; }

 private:
  void find(std::uint32_t group, Names& out) {
    out.wanted = all_;
    for (const PartitionId id : state_.node_sets.partitions_of(group)) {
      ++looked_at_;
      const Partition& p = state_.partition(id);
      if (!sight_.partition(p)) continue;
      out.partitions.push_back(id);
      out.bytes += p.name.size() + 1;
      out.wanted = out.wanted || asked_[id.value()];
    }
  }

  const State& state_;
  const Sight& sight_;
  bool all_;
  std::vector<bool> asked_;  // by PartitionId
  std::unordered_map<std::uint32_t, Names> groups_;
  std::size_t looked_at_ = 0;
};

std::vector<std::string> names_in(const State& state, const std::vector<PartitionId>& partitions) {
  std::vector<std::string> out;
  out.reserve(partitions.size());
  for (const PartitionId id : partitions) out.push_back(state.partition(id).name);
  return out;
}

class NodeLister {
 public:
  NodeLister(const Context& ctx, const Sight& sight, proto::ListNodes& m)
      : ctx_(ctx),
        sight_(sight),
        m_(m),
        seen_(ctx.state, sight, m.partitions),
        windows_(windows_of(ctx)) {
    std::sort(m_.nodes.begin(), m_.nodes.end());
    reply_.now = ctx.now;
  }

  Result<proto::ListNodesReply> whole() {
    std::size_t bytes = 0;
    for (const NodeId id : ctx_.state.node_order)
      if (wanted(id)) bytes += kLeastNodeRow + seen_.of(id).bytes;
    if (bytes > codec::kMaxMessageBytes) return tl::unexpected(too_large("nodes"));
    for (const NodeId id : ctx_.state.node_order)
      if (wanted(id)) add(id).partitions = names_in(ctx_.state, seen_.of(id).partitions);
    return std::move(reply_);
  }

  proto::ListNodesReply page() {
    proto::NodePage& page = reply_.page.emplace();
    const std::size_t most = m_.gpus ? kPageGpuNodes : kPageNodes;
    for (std::size_t n = *m_.from; n < ctx_.state.nodes.size(); ++n) {
      if (reply_.nodes.size() >= most || seen_.looked_at() >= kPageNames) {
        page.next = static_cast<std::uint32_t>(n);
        break;
      }
      const NodeId id(static_cast<std::uint32_t>(n));
      if (!ctx_.state.node_sets.listed(id) || !wanted(id)) continue;
      add(id);
      page.places.push_back(ctx_.state.node_sets.place_of(id));
      SeenPartitions::Names& names = seen_.of(id);
      if (!names.list) {
        names.list = static_cast<std::uint32_t>(page.partitions.size());
        page.partitions.push_back(names_in(ctx_.state, names.partitions));
      }
      page.list_of.push_back(*names.list);
    }
    return std::move(reply_);
  }

 private:
  bool wanted(NodeId id) {
    if (!sight_.node(id)) return false;
    if (!m_.nodes.empty() &&
        !std::binary_search(m_.nodes.begin(), m_.nodes.end(), ctx_.state.node(id).name))
      return false;
    return m_.partitions.empty() || seen_.of(id).wanted;
  }
  proto::NodeRow& add(NodeId id) {
    const Node& node = ctx_.state.node(id);
    proto::NodeRow row = node_row(ctx_, sight_, windows_[id.value()], node);
    if (m_.gpus) add_gpus(ctx_.state, sight_.jobs(), node, row);
    if (m_.gpus) add_activity(ctx_.state, sight_.jobs(), ctx_.link(id), row);
    return reply_.nodes.emplace_back(std::move(row));
  }

  const Context& ctx_;
  const Sight& sight_;
  proto::ListNodes& m_;
  SeenPartitions seen_;
  std::vector<const AdvanceReservation*> windows_;  // by NodeId
  proto::ListNodesReply reply_;
};

Result<proto::ListPartitionsReply> all_partitions(const Context& ctx, const Sight& sight) {
  proto::ListPartitionsReply reply;
  std::size_t bytes = 0;
  for (const PartitionId id : ctx.state.partition_order) {
    const Partition& p = ctx.state.partition(id);
    if (!sight.partition(p)) continue;
    bytes += kLeastQueueRow;
    for (const NodeId node : p.nodes)
      if (sight.node(node)) bytes += ctx.state.node(node).name.size() + 1;
    if (bytes > codec::kMaxMessageBytes) return tl::unexpected(too_large("partitions"));
    reply.partitions.push_back(partition_row(sight, p));
    reply.partitions.back().nodes = sight.names_of(p.nodes);
  }
  return reply;
}

proto::ListPartitionsReply partition_page(const Context& ctx, const Sight& sight,
                                          std::uint32_t from) {
  const State& state = ctx.state;
  proto::ListPartitionsReply reply;
  proto::PartitionPage& page = reply.page.emplace();
  std::unordered_map<std::uint32_t, std::uint32_t> lists;  // lists of this page, by set of nodes
  std::size_t names = 0;
  for (std::size_t n = from; n < state.partitions.size(); ++n) {
    if (reply.partitions.size() >= kPageQueues || names >= kPageNames) {
      page.next = static_cast<std::uint32_t>(n);
      break;
    }
    const Partition& p = state.partitions[n];
    if (!state.node_sets.listed(p.id) || !sight.partition(p)) continue;
    const auto [list, fresh] = lists.try_emplace(state.node_sets.set_of(p.id),
                                                 static_cast<std::uint32_t>(page.hosts.size()));
    if (fresh) page.hosts.push_back(compress_hostlist(sight.names_of(p.nodes)));
    if (fresh) names += p.nodes.size();
    reply.partitions.push_back(partition_row(sight, p));
    page.places.push_back(state.node_sets.place_of(p.id));
    page.list_of.push_back(list->second);
  }
  return reply;
}

}  // namespace

static void handle(Context& ctx, const ClientRequest& from, proto::ListNodes&& m) {
  const Sight sight(ctx.state, from.who);
  for (const std::string& name : m.nodes)
    if (sight.node_named(name) == nullptr) return refuse(ctx, from, no_such_node(name));
  NodeLister lister(ctx, sight, m);
  if (m.from) return ctx.reply(from, lister.page());
  auto whole = lister.whole();
  if (!whole) return refuse(ctx, from, whole.error());
  ctx.reply(from, std::move(*whole));
}

static void handle(Context& ctx, const ClientRequest& from, proto::ListPartitions&& m) {
  const Sight sight(ctx.state, from.who);
  Result<proto::ListPartitionsReply> reply =
      m.from ? partition_page(ctx, sight, *m.from) : all_partitions(ctx, sight);
  if (!reply) return refuse(ctx, from, reply.error());
  if (m.from.value_or(0) == 0)
    for (const auto& [name, license] : ctx.state.licenses)
      if (license.total > 0 || license.used > 0)
        reply->licenses.push_back({name, license.total, license.used});
  ctx.reply(from, std::move(*reply));
}

const Subject kListNodesMessages{.name = "list nodes",
                                 .handlers = kHandlers<proto::ListNodes, proto::ListPartitions>};

}  // namespace gantry::core
