// Events of the controller and its cluster; see events.h.
#pragma once

#include <string>
#include <vector>

#include "common/proto/node_report.h"
#include "ctld/core/event/event_fields.h"
#include "ctld/core/state/node.h"

namespace gantry::core::event {

struct ControllerStarted {
  Epoch epoch{};
  GANTRY_EVENT(1, "controller_started") { v(1, "epoch", s.epoch); }
};

struct NodeDeclared {  // first time this name is in the configuration
  NodeId node{};
  std::string name;
  GANTRY_EVENT(2, "node_declared") {
    v(1, "node", s.node);
    v(2, "name", s.name);
  }
};

struct PartitionDeclared {
  PartitionId partition{};
  std::string name;
  GANTRY_EVENT(3, "partition_declared") {
    v(1, "partition", s.partition);
    v(2, "name", s.name);
  }
};

struct NodeRegistered {  // its facts, or its highest job id, differ from the known ones
  NodeId node{};
  NodeFacts facts;
  JobId highest_job{};  // the node had an order for it: no id up to here is given again
  GANTRY_EVENT(4, "node_registered") {
    v(1, "node", s.node);
    v(2, "facts", s.facts);
    v(3, "highest_job", s.highest_job);
  }
};

struct NodeHealthChanged {
  NodeId node{};
  NodeHealth health = NodeHealth::down;
  std::string reason;
  GANTRY_EVENT(5, "node_health") {
    v(1, "node", s.node);
    v(2, "health", s.health);
    v(3, "reason", s.reason);
  }
};

// Nodes that were lost one after the other are recorded as one fault, of the part of the topology
// (such as a rack) that they make up.
struct NodesLost {
  std::vector<NodeId> nodes;  // lost nodes whose intent is open, ascending
  std::string reason;         // "rack r1: not responding"
  Instant since{};            // when the first of them was lost
  GANTRY_EVENT(12, "nodes_lost") {
    v(1, "nodes", s.nodes);
    v(2, "reason", s.reason);
    v(3, "since", s.since);
  }
};

struct NodeIntentChanged {
  NodeId node{};
  NodeIntent intent = NodeIntent::open;
  std::string reason;
  std::string by;
  GANTRY_EVENT(6, "node_intent") {
    v(1, "node", s.node);
    v(2, "intent", s.intent);
    v(3, "reason", s.reason);
    v(4, "by", s.by);
  }
};

struct GpuDrained {
  NodeId node{};
  std::string uuid;
  std::string reason;
  std::string by;
  GANTRY_EVENT(10, "gpu_drained") {
    v(1, "node", s.node);
    v(2, "uuid", s.uuid);
    v(3, "reason", s.reason);
    v(4, "by", s.by);
  }
};

struct GpuResumed {  // a GPU that was drained
  NodeId node{};
  std::string uuid;
  GANTRY_EVENT(11, "gpu_resumed") {
    v(1, "node", s.node);
    v(2, "uuid", s.uuid);
  }
};

struct NodeEnrolled {
  NodeId node{};
  std::string public_key;
  GANTRY_EVENT(7, "node_enrolled") {
    v(1, "node", s.node);
    v(2, "public_key", s.public_key);
  }
};

struct PartitionUpChanged {
  PartitionId partition{};
  bool up = true;
  GANTRY_EVENT(8, "partition_up") {
    v(1, "partition", s.partition);
    v(2, "up", s.up);
  }
};

struct KeyRegistered {
  std::string public_key;
  std::optional<std::string> user;  // unset: removed
  GANTRY_EVENT(9, "key_registered") {
    v(1, "public_key", s.public_key);
    v(2, "user", s.user);
  }
};

}  // namespace gantry::core::event
