// Sending orders to nodes; see context.h.
#include "ctld/core/context.h"

#include <algorithm>

#include "ctld/core/node_links.h"

namespace gantry::core {

void Context::send(NodeId node, OrderMessage message, BlobRefs blobs) {
  ++rt.stats.orders;
  turn.orders.push_back({state.node(node).name, std::move(message), std::move(blobs)});
}

proto::OrderStamp Context::stamp(NodeId node) {
  NodeLink& link = rt.links->all.at(node.value());
  return {state.epoch, link.session, link.next_seq++};
}

const NodeLink& Context::link(NodeId node) const {
  return rt.links->all.at(node.value());
}

bool Context::hears(NodeId node, const Job& job) const {
  const NodeLink& l = link(node);
  const proto::AttemptKey key{job.id, job.attempt};
  return l.session != 0 && std::find(l.missing.begin(), l.missing.end(), key) == l.missing.end();
}

}  // namespace gantry::core
