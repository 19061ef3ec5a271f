#include "ctld/core/node/racks.h"

#include <algorithm>

#include <fmt/core.h>

#include "common/text/hostlist.h"
#include "common/text/text.h"
#include "config/config.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_cluster.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

constexpr std::size_t kLeastLost = 2;  // fewer lost nodes are the nodes' own faults

std::uint32_t domain_of(const CompiledTenancy& compiled, NodeId node, std::size_t level) {
  const std::size_t n = node.value();
  return n < compiled.nodes.size() ? compiled.nodes[n].domains[level] : sched::kNoIndex;
}

DomainNodes nodes_in(const State& state, std::size_t level, std::uint32_t domain) {
  const CompiledTenancy& compiled = state.tenancy.compiled;
  const sched::TopologyLevel& view = compiled.view->levels[level];
  DomainNodes out{fmt::format("{} {}", view.name, view.domains[domain]), {}};
  for (const NodeId id : state.node_order)
    if (domain_of(compiled, id, level) == domain) out.nodes.push_back(id);
  std::sort(out.nodes.begin(), out.nodes.end());
  return out;
}

// The nodes that have stopped answering lately, if none of `nodes` is up; else none. A node that an
// operator drained or closed keeps the operator's reason and time, so it is not counted.
std::vector<NodeId> lost_together(const Context& ctx, const std::vector<NodeId>& nodes) {
  std::vector<NodeId> out;
  for (const NodeId id : nodes) {
    const Node& node = ctx.state.node(id);
    if (node.health == NodeHealth::up) return {};
    const bool lost = node.health == NodeHealth::lost && node.intent == NodeIntent::open;
    if (lost && node.since && *node.since + ctx.config.controller.node_timeout >= ctx.now)
      out.push_back(id);
  }
  if (out.size() < kLeastLost) out.clear();
  return out;
}

void record_fault(Context& ctx, const DomainNodes& domain, const std::vector<NodeId>& lost) {
  Instant first = ctx.now;
  std::vector<std::string> names;
  for (const NodeId id : lost) {
    const Node& node = ctx.state.node(id);
    first = std::min(first, *node.since);
    names.push_back(node.name);
  }
  ctx.note(fmt::format("{} is lost: {} stopped responding within {}", domain.title,
                       compress_hostlist(names), format_duration(ctx.now - first)));
  ctx.record(event::NodesLost{lost, domain.title + ": not responding", first});
}

}  // namespace

Result<DomainNodes> domain_nodes(const State& state, const std::string& name) {
  const sched::TenancyPtr& view = state.tenancy.compiled.view;
  if (!view || view->levels.empty())
    return fail(ErrorCode::not_found,
                fmt::format("there is no \"{}\": this cluster has no topology", name));
  struct At {
    std::size_t level;
    std::uint32_t domain;
  };
  std::vector<At> found;
  for (std::size_t level = 0; level < view->levels.size(); ++level) {
    const sched::TopologyLevel& l = view->levels[level];
    for (std::uint32_t d = 0; d < l.domains.size(); ++d)
      if (l.domains[d] == name || fmt::format("{}:{}", l.name, l.domains[d]) == name)
        found.push_back({level, d});
  }
  if (found.empty())
    return fail(ErrorCode::not_found, fmt::format("the topology has no \"{}\"", name));
  if (found.size() > 1)
    return fail(ErrorCode::invalid_argument,
                fmt::format("\"{}\" is a {} and a {}: say which, as {}:{}", name,
                            view->levels[found[0].level].name, view->levels[found[1].level].name,
                            view->levels[found[0].level].name, name));
  return nodes_in(state, found[0].level, found[0].domain);
}

void look_at_racks(Context& ctx, const std::vector<NodeId>& lost) {
  const CompiledTenancy& compiled = ctx.state.tenancy.compiled;
  if (!compiled.view) return;
  std::vector<NodeId> told;  // ascending
  for (const NodeId id : lost) {
    for (std::size_t level = 0; level < compiled.view->levels.size(); ++level) {
      if (std::binary_search(told.begin(), told.end(), id)) break;
      const std::uint32_t d = domain_of(compiled, id, level);
      if (d == sched::kNoIndex) continue;
      const DomainNodes domain = nodes_in(ctx.state, level, d);
      const std::vector<NodeId> together = lost_together(ctx, domain.nodes);
      if (!std::binary_search(together.begin(), together.end(), id)) continue;
      record_fault(ctx, domain, together);
      told.insert(told.end(), together.begin(), together.end());
      std::sort(told.begin(), told.end());
    }
  }
}

}  // namespace gantry::core
