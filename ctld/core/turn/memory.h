// TurnMemory: orders that were sent, timers of jobs and nodes, and the reasons why jobs waited.
#pragma once

#include <cstdint>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/job/job_state.h"
#include "common/time/time.h"
#include "common/types.h"
#include "ctld/core/state/job.h"

namespace gantry::core {

// The last order sent about one node's part of an attempt.
enum class SentKind : std::uint8_t { none, launch, go, freeze, thaw, terminate };
struct Sent {
  SentKind kind = SentKind::none;
  std::uint64_t session = 0;
  Instant at{};
  Instant first{};   // first order of this kind in this session
  Duration again{};  // pause before the order is repeated; it grows
};

// Until when a class of jobs waited, and for which reason; see waits.h.
struct WaitInterval {
  Instant until{};
  JobId head{};
  Reason of_head = Reason::none, of_rest = Reason::none;
};

struct TurnMemory {
  std::unordered_map<JobId, std::vector<Sent>> sent;  // for placed jobs, by rank
  std::set<std::pair<Instant, JobId>> job_timers;
  std::set<std::pair<Instant, NodeId>> node_timers;
  std::unordered_map<ClassId, std::vector<WaitInterval>> wait_intervals;
  std::unordered_map<JobId, Instant> waits_since;  // when a requeued job was requeued
  Instant planned{};  // when the last plan came, or was asked for because of time
};

}  // namespace gantry::core
