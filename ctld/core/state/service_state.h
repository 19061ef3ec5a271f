// What the controller stores of services in addition to their documents: what their replicas run,
// how many are wanted, and which changes led there. Only apply() changes it.
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

inline constexpr std::size_t kMostServiceEvents =
    100;  // events of one service; older ones are dropped

// A set of replicas that run the same: one state of one version of the document. While a changed
// version replaces the one before, the service has two sets of this version.
struct ReplicaSet {
  std::uint64_t revision = 0;  // numbers of a service's sets are never used again
  tenancy::ServiceVersion what;
  std::uint32_t port = 0;           // port on which the server listens in the job
  Owner owner;                      // the user who applied it: the replicas are this user's jobs
  std::vector<std::string> groups;  // the owner's groups at that time, for roles that groups have
  std::uint32_t part = 1000;        // share of the version's requests, in thousandths
  Instant since{};
  GANTRY_FIELDS(FIELD(1, revision), FIELD(2, what), FIELD(3, port), FIELD(4, owner),
                FIELD(5, groups), FIELD(6, part), FIELD(7, since))
};

struct ServiceState {
  std::string tenant;
  std::vector<ReplicaSet> sets;  // by revision, so the newest set of a version comes last
  std::uint64_t last_revision = 0;
  std::uint32_t wanted = 0;  // number of wanted replicas
  std::uint32_t shape = 0;   // index in the list of shapes that the service may have
  std::string reason;
  bool paused = false;
  Instant stepped{};  // when the share of a set last changed
  // Versions that were rolled back, as they were; the document may still have them.
  std::vector<tenancy::ServiceVersion> went_back;
  std::vector<proto::ServiceEvent> events;  // the oldest first
  // For the forecast: the most requests of one minute in each span of scale::kHistorySpan, a ring
  // buffer; and the number of the newest span, counted from 1970. Empty until the service has a
  // forecast.
  std::vector<std::uint32_t> history;
  std::uint64_t history_at = 0;
  GANTRY_FIELDS(FIELD(1, tenant), FIELD(2, sets), FIELD(3, last_revision), FIELD(4, wanted),
                FIELD(5, shape), FIELD(6, reason), FIELD(7, paused), FIELD(8, stepped),
                FIELD(9, went_back), FIELD(11, events), FIELD(12, history), FIELD(13, history_at))
};

struct ServiceTable {
  std::map<std::string, ServiceState> all;  // by name
  // Derived: known jobs that are replicas, and the service of each.
  std::unordered_map<JobId, ReplicaOf> replicas;
  std::map<std::string, std::set<JobId>> jobs;  // by service
};

}  // namespace gantry::core
