// Events of services; see events.h. `text` is for people: what changed, with the numbers that led
// to it.
#pragma once

#include <string>
#include <vector>

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
    v(1, "name", s.name);
    v(2, "tenant", s.tenant);
    v(3, "sets", s.sets);
    v(4, "last_revision", s.last_revision);
    v(5, "went_back", s.went_back);
    v(6, "text", s.text);
  }
};

struct ServiceScaled {
  std::string name;
  std::uint32_t wanted = 0;
  std::uint32_t shape = 0;
  std::string reason;
  std::string text;
  GANTRY_EVENT(91, "service_scaled") {
    v(1, "name", s.name);
    v(2, "wanted", s.wanted);
    v(3, "shape", s.shape);
    v(4, "reason", s.reason);
    v(5, "text", s.text);
  }
};

struct SetPart {
  std::uint64_t revision = 0;
  std::uint32_t part = 0;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "revision", s.revision);
    v(2, "part", s.part);
  }
};

struct ServiceStepped {  // requests move from one set to another
  std::string name;
  std::vector<SetPart> parts;
  std::string text;
  GANTRY_EVENT(92, "service_stepped") {
    v(1, "name", s.name);
    v(2, "parts", s.parts);
    v(3, "text", s.text);
  }
};

struct ServiceNoted {  // what happened to it, or that it was paused
  std::string name;
  std::string text;
  std::optional<bool> paused;
  GANTRY_EVENT(93, "service_noted") {
    v(1, "name", s.name);
    v(2, "text", s.text);
    v(3, "paused", s.paused);
  }
};

struct ServiceRemoved {
  std::string name;
  GANTRY_EVENT(94, "service_removed") { v(1, "name", s.name); }
};

struct DoorGiven {  // with JobPlaced: the port of a replica's node on which gates reach it
  JobId job{};
  std::uint32_t port = 0;
  GANTRY_EVENT(95, "door_given") {
    v(1, "job", s.job);
    v(2, "port", s.port);
  }
};

struct ServiceHistory {  // for the forecast: one more span of its history
  std::string name;
  std::uint64_t at = 0;    // the span, of scale::kHistorySpan, counted from 1970
  std::uint32_t most = 0;  // requests of one minute in it
  GANTRY_EVENT(99, "service_history") {
    v(1, "name", s.name);
    v(2, "at", s.at);
    v(3, "most", s.most);
  }
};

}  // namespace gantry::core::event
