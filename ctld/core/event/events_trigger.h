// Events of triggers; see events.h.
#pragma once

#include <optional>
#include <string>

#include "common/proto/triggers.h"
#include "ctld/core/event/event_fields.h"

namespace gantry::core::event {

struct TriggerSet {
  proto::Trigger trigger;
  GANTRY_EVENT(71, "trigger_set") { v(1, "trigger", s.trigger); }
};

struct TriggerCleared {
  TriggerId trigger{};
  GANTRY_EVENT(72, "trigger_cleared") { v(1, "trigger", s.trigger); }
};

struct TriggerPulled {
  TriggerId trigger{};
  proto::TriggerOn on{};
  Instant due{};
  std::string argument;
  std::optional<Attempt> attempt;  // the attempt of the job that pulled it
  GANTRY_EVENT(73, "trigger_pulled") {
    v(1, "trigger", s.trigger);
    v(2, "on", s.on);
    v(3, "due", s.due);
    v(4, "argument", s.argument);
    v(5, "attempt", s.attempt);
  }
};

struct TriggerFired {  // its program is to run for its first pull
  TriggerId trigger{};
  GANTRY_EVENT(74, "trigger_fired") { v(1, "trigger", s.trigger); }
};

}  // namespace gantry::core::event
