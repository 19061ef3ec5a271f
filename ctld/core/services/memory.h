// What the controller knows of services but need not store: reports of gates, and what was decided
// from them. After a restart the gates report again.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "common/money/money.h"
#include "common/proto/gate.h"
#include "ctld/scale/rollout.h"
#include "ctld/scale/scale.h"

namespace gantry::core {

// A gate that has not reported for this long does not count any more.
inline constexpr Duration kGateSilent = seconds(10);

struct GateSeen {
  Instant at{};
  std::string address;
  std::uint64_t revision = 0;  // revision of the table that the gate follows
  std::string user;            // the user as whom the gate connects
};

struct ReplicaMarks {
  struct Said {
    Instant at{};
    proto::ReplicaReport report;
  };
  std::map<std::string, Said> gates;  // the last report of each gate
  std::optional<Instant> ready;       // since when at least one gate finds the replica ready
  bool was_ready = false;
  std::optional<Instant> draining;   // since when it gets no new requests
  std::uint64_t drain_revision = 0;  // revision of the first table in which it is draining
  std::string drain_why;
  bool settled = false;  // the end of its job was handled
};

struct SetMarks {         // about one set of replicas
  scale::SetFacts facts;  // since the rollout's last step; `part` and `ready` are filled in later
  std::uint32_t failures = 0;  // failed replicas in a row
  Instant next_try{};          // earliest time to make its next replica
  std::string refused;         // why the last one could not be made; "" = it was made
};

struct ServiceMarks {
  scale::ServiceLoad load;
  scale::ScaleMemory memory;
  std::map<std::uint64_t, SetMarks> sets;        // by revision
  std::map<std::string, std::uint32_t> running;  // by gate: requests that run in replicas
  std::map<std::string, std::uint32_t> waiting;  // by gate: requests that wait for a replica
  std::string reason;                            // why the service has this number of replicas
  bool remembered = false;                       // true if `load` has the history of earlier days
  Duration start_time{};                         // mean, from a replica's submit until it was ready
  std::optional<Money> cost;                     // cost of one replica for an hour
};

struct ServiceMemory {
  std::map<std::string, ServiceMarks> services;
  std::unordered_map<JobId, ReplicaMarks> replicas;
  std::map<std::string, GateSeen> gates;
  proto::GateTable table;  // as sent to gates; its revision rises with each change
  std::optional<Instant> due;
  Instant looked{};
};

}  // namespace gantry::core
