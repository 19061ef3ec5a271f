// Recording and sending; see context.h.
#include "ctld/core/context.h"

#include <algorithm>

#include "common/codec/codec.h"
#include "ctld/core/apply.h"
#include "ctld/core/notify/letters.h"
#include "ctld/core/notify/usage_events.h"

namespace gantry::core {

void Context::record(Event event) {
  last_seq = EventSeq(last_seq.value() + 1);
  const JournalEvent entry{now, std::move(event)};
  turn.append.events.push_back({last_seq, codec::encode(entry)});
  if (config.controller.usage_events.empty())
    apply(state, now, entry.event);
  else
    apply_and_tell(state, last_seq, now, entry.event, config.cluster, turn.usage);
  if (!config.controller.mail_program.empty()) write_letters(state, now, entry.event, turn.letters);
  ++rt.stats.events;
}

void Context::send(NodeId node, OrderMessage message, BlobRefs blobs) {
  ++rt.stats.orders;
  turn.orders.push_back({state.node(node).name, std::move(message), std::move(blobs)});
}

proto::OrderStamp Context::stamp(NodeId node) {
  NodeLink& link = rt.links.at(node.value());
  return {state.epoch, link.session, link.next_seq++};
}

bool Context::hears(NodeId node, const Job& job) const {
  const NodeLink& l = link(node);
  const proto::AttemptKey key{job.id, job.attempt};
  return l.session != 0 && std::find(l.missing.begin(), l.missing.end(), key) == l.missing.end();
}

}  // namespace gantry::core
