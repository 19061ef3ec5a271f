// What the controller knows of services but need not keep: what gates say, and what was decided
// from it. After a restart the gates say it again.
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

// A gate that has said nothing for so long counts no more.
inline constexpr Duration kGateSilent = seconds(10);

struct GateSeen {
  Instant at{};
  std::string address;
  std::uint64_t revision = 0;  // of the table that is in force there
  std::string user;            // as whom it connects
};

struct ReplicaMarks {
  struct Said {
    Instant at{};
    proto::ReplicaReport report;
  };
  std::map<std::string, Said> gates;  // what each gate said last
  std::optional<Instant> ready;       // since when some gate finds it ready
  bool was_ready = false;
  std::optional<Instant> draining;   // since when it gets no new requests
  std::uint64_t drain_revision = 0;  // of the first table that says so
  std::string drain_why;
  bool settled = false;  // its end was looked at
};

struct SetMarks {         // of one set of replicas
  scale::SetFacts facts;  // since the rollout's last step; `part` and `ready` are filled in later
  std::uint32_t failures = 0;  // in a row
  Instant next_try{};          // no replica of it is made before
  std::string refused;         // why the last one could not be made; "" = it could
};

struct ServiceMarks {
  scale::ServiceLoad load;
  scale::ScaleMemory memory;
  std::map<std::uint64_t, SetMarks> sets;        // by revision
  std::map<std::string, std::uint32_t> running;  // by gate: requests in replicas
  std::map<std::string, std::uint32_t> waiting;  // by gate: requests that no replica has taken
  std::string reason;                            // of the newest answer about replicas
  bool remembered = false;                       // `load` has the history of earlier days
  Duration start_time{};                         // mean, from a replica's submit until it was ready
  std::optional<Money> cost;                     // of one replica for an hour
};

struct ServiceMemory {
  std::map<std::string, ServiceMarks> services;
  std::unordered_map<JobId, ReplicaMarks> replicas;
  std::map<std::string, GateSeen> gates;
  proto::GateTable table;  // as gates get it; its revision rises with each change
  std::optional<Instant> due;
  Instant looked{};
};

}  // namespace gantry::core
