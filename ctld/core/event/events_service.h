// Events of services; see events.h. `text` is for people: what changed, with the numbers that led
// to it.
#pragma once

#include <string>
#include <vector>

#include "common/fields.h"
#include "ctld/core/event/event_fields.h"
#include "ctld/core/state/service_state.h"

namespace gantry::core::event {

struct ServiceSet {  // which sets a service has, or that it is new
  std::string name;
  std::string tenant;
  std::vector<ReplicaSet> sets;
  std::uint64_t last_revision = 0;
  std::vector<tenancy::ServiceVersion> went_back;
  std::string text;
  GANTRY_EVENT(90, "service_set") {
    FIELD(1, name), FIELD(2, tenant), FIELD(3, sets), FIELD(4, last_revision), FIELD(5, went_back),
        FIELD(6, text);
  }
};

struct ServiceScaled {
  std::string name;
  std::uint32_t wanted = 0;
  std::uint32_t shape = 0;
  std::string reason;
  std::string text;
  GANTRY_EVENT(91, "service_scaled") {
    FIELD(1, name), FIELD(2, wanted), FIELD(3, shape), FIELD(4, reason), FIELD(5, text);
  }
};

struct SetPart {
  std::uint64_t revision = 0;
  std::uint32_t part = 0;
  GANTRY_FIELDS(FIELD(1, revision), FIELD(2, part))
};

struct ServiceStepped {  // a share of the requests moves from one set of replicas to another
  std::string name;
  std::vector<SetPart> parts;
  std::string text;
  GANTRY_EVENT(92, "service_stepped") { FIELD(1, name), FIELD(2, parts), FIELD(3, text); }
};

struct ServiceNoted {  // an event of the service for people, or that it was paused
  std::string name;
  std::string text;
  std::optional<bool> paused;
  GANTRY_EVENT(93, "service_noted") { FIELD(1, name), FIELD(2, text), FIELD(3, paused); }
};

struct ServiceRemoved {
  std::string name;
  GANTRY_EVENT(94, "service_removed") { FIELD(1, name); }
};

struct DoorGiven {  // with JobPlaced: the port of a replica's node on which gantry-gate reaches the
                    // replica
  JobId job{};
  std::uint32_t port = 0;
  GANTRY_EVENT(95, "door_given") { FIELD(1, job), FIELD(2, port); }
};

struct ServiceHistory {  // for the forecast: adds one span to the history of requests
  std::string name;
  std::uint64_t at = 0;    // the span, of scale::kHistorySpan, counted from 1970
  std::uint32_t most = 0;  // the most requests in one minute of it
  GANTRY_EVENT(99, "service_history") { FIELD(1, name), FIELD(2, at), FIELD(3, most); }
};

}  // namespace gantry::core::event
