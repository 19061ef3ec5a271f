// Services as the controller keeps them beside their documents: what their replicas run, how many
// are wanted, and which changes led there. Only apply() changes it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/fields.h"
#include "common/job/job_spec.h"
#include "common/job/placement.h"
#include "common/proto/services.h"
#include "common/tenancy/tenancy_service.h"

namespace gantry::core {

inline constexpr std::size_t kMostServiceEvents = 100;  // of one service; older ones are dropped

// Replicas that run the same: one state of one version of the document. While a changed version
// comes in place of the one before, the service has two sets of it.
struct ReplicaSet {
  std::uint64_t revision = 0;  // numbers of a service's sets are never used again
  tenancy::ServiceVersion what;
  std::uint32_t port = 0;           // on which the server listens in the job
  Owner owner;                      // who gave it: the replicas are this user's jobs
  std::vector<std::string> groups;  // of the owner then, for roles that groups have
  std::uint32_t part = 1000;        // thousandths of the version's requests
  Instant since{};
  GANTRY_FIELDS(FIELD(1, revision), FIELD(2, what), FIELD(3, port), FIELD(4, owner),
                FIELD(5, groups), FIELD(6, part), FIELD(7, since))
};

struct ServiceState {
  std::string tenant;
  std::vector<ReplicaSet> sets;  // by revision, so that of one version the newest is the last
  std::uint64_t last_revision = 0;
  std::uint32_t wanted = 0;  // replicas
  std::uint32_t shape = 0;   // of the ladder
  std::string reason;
  bool paused = false;
  Instant stepped{};  // when a set's part changed last
  // Versions that were taken back, as they were: the document may still say them.
  std::vector<tenancy::ServiceVersion> went_back;
  std::vector<proto::ServiceEvent> events;  // the oldest first
  // For the forecast: the most requests of one minute in each span of scale::kHistorySpan, a ring;
  // and the newest span, counted from 1970. Empty until the service has a forecast.
  std::vector<std::uint32_t> history;
  std::uint64_t history_at = 0;
  GANTRY_FIELDS(FIELD(1, tenant), FIELD(2, sets), FIELD(3, last_revision), FIELD(4, wanted),
                FIELD(5, shape), FIELD(6, reason), FIELD(7, paused), FIELD(8, stepped),
                FIELD(9, went_back), FIELD(11, events), FIELD(12, history), FIELD(13, history_at))
};

struct ServiceTable {
  std::map<std::string, ServiceState> all;  // by name
  // Derived: jobs that are replicas and are known, and what they are of.
  std::unordered_map<JobId, ReplicaOf> replicas;
  std::map<std::string, std::set<JobId>> jobs;  // by service
};

}  // namespace gantry::core
