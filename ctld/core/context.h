// Context: what a handler gets. It reads State and Config, records events (which are applied at
// once) and adds replies and orders to the turn; it has no other way to change anything durable.
#pragma once

#include <string>

#include "ctld/core/event/event.h"
#include "ctld/core/request.h"

namespace gantry {
struct Config;
}
namespace gantry::proto {
struct OrderStamp;
}

namespace gantry::core {

// A file that looks into one of these includes its header: state/state.h, recorder.h,
// state/mutable_state.h, runtime.h, turn_out.h.
struct State;
class Recorder;
struct Touched;
struct Runtime;
struct Turn;
struct Job;
struct NodeLink;
struct BlobRefs;
namespace event {
struct JobSubmitted;
}

struct Context {
  const State& state;
  Recorder& recorder;  // handlers call record() below instead
  Touched& touched;    // what has to be re-examined after this input (settle.h)
  Runtime& rt;
  const Config& config;
  Turn& turn;
  Instant now;

  // Journals and applies one event.
  void record(EventRef event);
  void record(const event::JobSubmitted& event, Bytes spec);

  void note(std::string line);
  void send(NodeId node, OrderMessage message);
  void send(NodeId node, OrderMessage message, BlobRefs blobs);
  void reply(const ClientRequest& to, ReplyMessage message);
  // The epoch and number of the next order to a registered node.
  proto::OrderStamp stamp(NodeId node);
  [[nodiscard]] const NodeLink& link(NodeId node) const;
  // Whether an order about this attempt may go to the node now.
  [[nodiscard]] bool hears(NodeId node, const Job& job) const;
};

}  // namespace gantry::core
