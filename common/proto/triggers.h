// Triggers (strigger): programs that the controller runs when something happens to a job or to
// nodes. A program runs as the user who set the trigger. Client to ctld; each message is answered
// by TriggerList.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/fields.h"
#include "common/time/time.h"
#include "common/types.h"

namespace gantry::proto {

enum class TriggerOn : std::uint8_t {
  fini = 1,      // the job is over
  time = 2,      // the job's time limit
  down = 3,      // a node that was up is down
  up = 4,        // a node that was down is up again
  drained = 5,   // nothing runs any more on a drained node
  idle = 6,      // nothing has run on a node for `offset`
  reconfig = 7,  // the controller has read its configuration again
};
GANTRY_NAMES(TriggerOn, {fini, "fini"}, {time, "time"}, {down, "down"}, {up, "up"},
             {drained, "drained"}, {idle, "idle"}, {reconfig, "reconfig"})

struct Trigger {
  TriggerId id{};  // given by the controller
  Uid uid{};       // user who set it; given by the controller
  std::string user;
  std::vector<TriggerOn> on;       // the events at which it fires
  std::optional<JobId> job;        // fini, time: this job; down, up: its nodes
  std::vector<std::string> nodes;  // without a job: these nodes; empty = every node
  Duration offset{};       // delay after the event; for `time` also a negative one, before it
  std::string program;     // absolute path
  bool permanent = false;  // stays after it has run
  GANTRY_FIELDS(FIELD(1, id), FIELD(2, uid), FIELD(3, user), FIELD(4, on), FIELD(5, job),
                FIELD(6, nodes), FIELD(7, offset), FIELD(8, program), FIELD(9, permanent))
};

struct SetTrigger {
  Trigger trigger;
  GANTRY_FIELDS(FIELD(1, trigger))
};

// Selects triggers that meet all given conditions.
struct TriggerFilter {
  std::optional<TriggerId> id;
  std::optional<JobId> job;
  std::optional<Uid> uid;
  GANTRY_FIELDS(FIELD(1, id), FIELD(2, job), FIELD(3, uid))
};

struct ListTriggers {
  TriggerFilter filter;
  GANTRY_FIELDS(FIELD(1, filter))
};

struct ClearTriggers {  // answered by the triggers that were removed
  TriggerFilter filter;
  GANTRY_FIELDS(FIELD(1, filter))
};

struct TriggerList {
  std::vector<Trigger> triggers;
  GANTRY_FIELDS(FIELD(1, triggers))
};

}  // namespace gantry::proto
