// Answers and orders of a handler; see context.h.
#include "ctld/core/context.h"

#include <algorithm>
#include <utility>

#include "common/proto/attempt.h"
#include "common/proto/node_order.h"
#include "ctld/core/recorder.h"
#include "ctld/core/request.h"
#include "ctld/core/runtime.h"
#include "ctld/core/state/state.h"
#include "ctld/core/turn_out.h"

#include "ctld/core/node_links.h"

namespace gantry::core {

void Context::record(EventRef event) {
  ++rt.stats.events;
  recorder.record(now, event);
}

void Context::record(const event::JobSubmitted& event, Bytes spec) {
  ++rt.stats.events;
  recorder.record(now, event, std::move(spec));
}

void Context::note(std::string line) {
  turn.notes.push_back(std::move(line));
}

void Context::reply(const ClientRequest& to, ReplyMessage message) {
  turn.replies.push_back({to.connection, to.request, std::move(message), {}});
}

void Context::send(NodeId node, OrderMessage message) {
  send(node, std::move(message), {});
}

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
