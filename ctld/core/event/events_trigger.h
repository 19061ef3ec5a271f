// Events of triggers; see events.h.
#pragma once

#include <optional>
#include <string>

#include "common/proto/triggers.h"
#include "ctld/core/event/event_fields.h"

namespace gantry::core::event {

struct TriggerSet {
  proto::Trigger trigger;
  GANTRY_EVENT(71, "trigger_set") { FIELD(1, trigger); }
};

struct TriggerCleared {
  TriggerId trigger{};
  GANTRY_EVENT(72, "trigger_cleared") { FIELD(1, trigger); }
};

struct TriggerPulled {
  TriggerId trigger{};
  proto::TriggerOn on{};
  Instant due{};
  std::string argument;
  std::optional<Attempt> attempt;  // the attempt of the job that set off the trigger
  GANTRY_EVENT(73, "trigger_pulled") {
    FIELD(1, trigger), FIELD(2, on), FIELD(3, due), FIELD(4, argument), FIELD(5, attempt);
  }
};

struct TriggerFired {  // the trigger's program is to run for the oldest event that set it off
  TriggerId trigger{};
  GANTRY_EVENT(74, "trigger_fired") { FIELD(1, trigger); }
};

}  // namespace gantry::core::event
