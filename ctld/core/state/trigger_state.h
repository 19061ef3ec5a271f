// Triggers that are set (strigger). Only apply() changes them.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/fields.h"
#include "common/proto/triggers.h"
#include "common/time/time.h"
#include "common/types.h"

namespace gantry::core {

struct TriggerPull {     // the event that a trigger waits for has happened
  Instant due{};         // when the trigger's program runs
  std::string argument;  // the job's id, or a host list
  GANTRY_FIELDS(FIELD(1, due), FIELD(2, argument))
};

struct TriggerState {
  proto::Trigger trigger;
  std::vector<TriggerPull> pulls;  // in order of their time
  std::optional<Attempt> timed,
      ended;  // attempts of which the time limit, and the end, last pulled it
  GANTRY_FIELDS(FIELD(1, trigger), FIELD(2, pulls), FIELD(3, timed), FIELD(4, ended))
  [[nodiscard]] bool spent() const { return !trigger.permanent && !pulls.empty(); }
};

struct TriggerTable {
  std::map<TriggerId, TriggerState> all;
  TriggerId last{};  // greatest id given so far

  // Derived.
  std::map<JobId, std::set<TriggerId>> of_job;    // triggers that name the job
  std::set<TriggerId> of_nodes;                   // down, up, drained, idle
  std::set<std::pair<Instant, TriggerId>> pulls;  // the first pull of each trigger
};

// A trigger's program that has to be run; see triggers.h.
struct ProgramRun {
  TriggerId trigger{};
  Uid uid{};
  std::string user;
  std::string program;  // absolute path
  std::string argument;
};

}  // namespace gantry::core
