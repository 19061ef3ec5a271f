// Events of the controller and its cluster; see events.h.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/proto/node_report.h"
#include "ctld/core/event/event_fields.h"
#include "ctld/core/state/node.h"

namespace gantry::core::event {

struct ControllerStarted {
  Epoch epoch{};
  GANTRY_EVENT(1, "controller_started") { FIELD(1, epoch); }
};

struct NodeDeclared {  // this name is in the configuration for the first time
  NodeId node{};
  std::string name;
  GANTRY_EVENT(2, "node_declared") { FIELD(1, node), FIELD(2, name); }
};

struct PartitionDeclared {
  PartitionId partition{};
  std::string name;
  GANTRY_EVENT(3, "partition_declared") { FIELD(1, partition), FIELD(2, name); }
};

struct NodeRegistered {  // the node's facts or its highest job id differ from the known ones
  NodeId node{};
  NodeFacts facts;
  JobId highest_job{};  // the node has seen this job id, so ids up to here are not used again
  GANTRY_EVENT(4, "node_registered") { FIELD(1, node), FIELD(2, facts), FIELD(3, highest_job); }
};

struct NodeHealthChanged {
  NodeId node{};
  NodeHealth health = NodeHealth::down;
  std::string reason;
  GANTRY_EVENT(5, "node_health") { FIELD(1, node), FIELD(2, health), FIELD(3, reason); }
};

// Nodes that were lost one after the other are recorded as one fault, of the part of the topology
// (such as a rack) that they make up.
struct NodesLost {
  std::vector<NodeId> nodes;  // lost nodes whose intent is open, ascending
  std::string reason;         // "rack r1: not responding"
  Instant since{};            // when the first of them was lost
  GANTRY_EVENT(12, "nodes_lost") { FIELD(1, nodes), FIELD(2, reason), FIELD(3, since); }
};

struct NodeIntentChanged {
  NodeId node{};
  NodeIntent intent = NodeIntent::open;
  std::string reason;
  std::string by;
  GANTRY_EVENT(6, "node_intent") {
    FIELD(1, node), FIELD(2, intent), FIELD(3, reason), FIELD(4, by);
  }
};

struct NodeNoted {  // what an operator set for a node, apart from its state
  NodeId node{};
  std::optional<std::vector<std::string>> features;  // sorted; unset: unchanged
  bool file_features = false;                        // the features in gantry.yaml apply again
  std::optional<std::string> comment;                // unset: unchanged
  GANTRY_EVENT(77, "node_noted") {
    FIELD(1, node), FIELD(2, features), FIELD(3, file_features), FIELD(4, comment);
  }
};

struct GpuDrained {
  NodeId node{};
  std::string uuid;
  std::string reason;
  std::string by;
  GANTRY_EVENT(10, "gpu_drained") {
    FIELD(1, node), FIELD(2, uuid), FIELD(3, reason), FIELD(4, by);
  }
};

struct GpuResumed {  // a drained GPU is in service again
  NodeId node{};
  std::string uuid;
  GANTRY_EVENT(11, "gpu_resumed") { FIELD(1, node), FIELD(2, uuid); }
};

struct NodeEnrolled {
  NodeId node{};
  std::string public_key;  // "" = the node has no key any more
  GANTRY_EVENT(7, "node_enrolled") { FIELD(1, node), FIELD(2, public_key); }
};

struct EnrollTokenMade {
  std::string hash;
  std::string node;
  Instant expires{};
  std::string by;
  GANTRY_EVENT(86, "enroll_token_made") {
    FIELD(1, hash), FIELD(2, node), FIELD(3, expires), FIELD(4, by);
  }
};

struct EnrollTokensGone {  // tokens were used, revoked, or have expired
  std::vector<std::string> hashes;
  GANTRY_EVENT(87, "enroll_tokens_gone") { FIELD(1, hashes); }
};

struct PartitionUpChanged {
  PartitionId partition{};
  bool up = true;
  std::optional<bool> accepts_jobs;  // unset: unchanged
  GANTRY_EVENT(8, "partition_up") { FIELD(1, partition), FIELD(2, up), FIELD(3, accepts_jobs); }
};

// The settings of a partition from commands, all of them, except whether it is up and accepts jobs:
// these two change only if set, and with `reset` both are as configured again.
struct PartitionSet {
  PartitionId partition{};
  PartitionOrigin origin = PartitionOrigin::file;
  std::map<std::string, std::string> values;
  std::optional<bool> up;
  std::optional<bool> accepts_jobs;
  bool reset = false;
  std::string by;
  GANTRY_EVENT(78, "partition_set") {
    FIELD(1, partition), FIELD(2, origin), FIELD(3, values), FIELD(4, up), FIELD(5, accepts_jobs),
        FIELD(6, reset), FIELD(7, by);
  }
};

struct KeyRegistered {
  std::string public_key;
  std::optional<std::string> user;  // unset: removed
  GANTRY_EVENT(9, "key_registered") { FIELD(1, public_key), FIELD(2, user); }
};

}  // namespace gantry::core::event
