// Services as the controller keeps them beside their documents: what their replicas run, how many
// are wanted, and which changes led there. Only apply() changes it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

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
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "revision", s.revision);
    v(2, "what", s.what);
    v(3, "port", s.port);
    v(4, "owner", s.owner);
    v(5, "groups", s.groups);
    v(6, "part", s.part);
    v(7, "since", s.since);
  }
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
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "tenant", s.tenant);
    v(2, "sets", s.sets);
    v(3, "last_revision", s.last_revision);
    v(4, "wanted", s.wanted);
    v(5, "shape", s.shape);
    v(6, "reason", s.reason);
    v(7, "paused", s.paused);
    v(8, "stepped", s.stepped);
    v(9, "went_back", s.went_back);
    v(11, "events", s.events);
    v(12, "history", s.history);
    v(13, "history_at", s.history_at);
  }
};

struct ServiceTable {
  std::map<std::string, ServiceState> all;  // by name
  // Derived: jobs that are replicas and are known, and what they are of.
  std::unordered_map<JobId, ReplicaOf> replicas;
  std::map<std::string, std::set<JobId>> jobs;  // by service
};

}  // namespace gantry::core
