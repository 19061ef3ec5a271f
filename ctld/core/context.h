// Context: what a handler gets. It reads State and Config, records events (which are applied at
// once) and adds replies and orders to the turn; it has no other way to change anything durable.
#pragma once

#include <string>
#include <utility>

#include "ctld/core/core.h"
#include "ctld/core/event/event.h"
#include "ctld/core/recorder.h"
#include "ctld/core/runtime.h"
#include "ctld/core/state/state.h"

namespace gantry::core {

struct Context {
  const State& state;
  Recorder& recorder;  // handlers call record() below instead
  Touched& touched;    // what settle has to look at after this input
  Runtime& rt;
  const Config& config;
  Turn& turn;
  Instant now;

  // Journals and applies one event.
  void record(EventRef event) {
    ++rt.stats.events;
    recorder.record(now, event);
  }
  void record(const event::JobSubmitted& event, Bytes spec) {
    ++rt.stats.events;
    recorder.record(now, event, std::move(spec));
  }

  void note(std::string line) { turn.notes.push_back(std::move(line)); }
  void send(NodeId node, OrderMessage message, BlobRefs blobs = {});
  void reply(const ClientRequest& to, ReplyMessage message) {
    turn.replies.push_back({to.connection, to.request, std::move(message), {}});
  }
  // The stamp of the next order to a registered node.
  proto::OrderStamp stamp(NodeId node);
  [[nodiscard]] const NodeLink& link(NodeId node) const;
  // Whether an order about this attempt may go to the node now.
  [[nodiscard]] bool hears(NodeId node, const Job& job) const;
};

}  // namespace gantry::core
