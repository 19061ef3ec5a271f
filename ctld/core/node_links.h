// NodeLinks: the connection to the daemon of each node, and what its last heartbeat reported. It
// does not survive a restart; then nodes register again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/proto/neighbours.h"
#include "common/proto/node_report.h"
#include "ctld/core/elapsed.h"
#include "ctld/core/state/node.h"

namespace gantry::core {

struct NodeLink {
  std::uint64_t session = 0;  // 0 = not registered with this controller
  std::uint64_t next_seq = 1;
  Instant last_seen{};  // time of its last message, or of this controller's start
  NodeClock clock;
  double load = 0;
  std::int64_t free_memory = 0;
  std::vector<proto::GpuActivity> gpus;               // from its last heartbeat
  std::vector<proto::AttemptUsage> usage;             // the same; sorted by key
  proto::NodeSharing sharing;                         // likewise
  std::map<proto::AttemptKey, Instant> told_sharing;  // when each job was last told of it
  Instant timer{};                                    // when it has to be looked at; 0 = never
  // Attempts that are placed on the node but were not in the list with which it registered. They
  // are judged when a heartbeat of this session proves that this was its newest registration. Until
  // then no order is sent about them, and `facts` (which may have a new boot id) are not taken
  // over.
  std::vector<proto::AttemptKey> missing;
  std::optional<NodeFacts> facts;
  bool told = false;  // the scheduler knows the node
  bool told_available = false;
};

struct NodeLinks {
  std::vector<NodeLink> all;       // by NodeId
  std::uint64_t next_session = 1;  // the epoch is the upper half of the number
};

}  // namespace gantry::core
