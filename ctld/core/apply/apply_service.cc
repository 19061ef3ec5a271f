// apply() of events about services.
#include <algorithm>

#include "common/assert.h"
#include "ctld/core/apply.h"
#include "ctld/core/event/events_service.h"
#include "ctld/core/resources/index.h"
#include "ctld/core/state/state.h"
#include "ctld/scale/load.h"

namespace gantry::core {
namespace {

ServiceState& service_of(MutableState& state, const std::string& name) {
  const auto it = state.services.all.find(name);
  GANTRY_ASSERT(it != state.services.all.end(), "a service that is there");
  state.unfolded.services.push_back(name);
  return it->second;
}

void note(ServiceState& service, Instant at, const std::string& text) {
  if (text.empty()) return;
  service.events.push_back({at, text});
  if (service.events.size() > kMostServiceEvents) service.events.erase(service.events.begin());
}

}  // namespace

void apply_event(MutableState& state, Instant at, const event::ServiceSet& e) {
  ServiceState& service = state.services.all[e.name];
  state.unfolded.services.push_back(e.name);
  service.tenant = e.tenant;
  service.sets = e.sets;
  service.last_revision = e.last_revision;
  service.went_back = e.went_back;
  service.stepped = at;
  note(service, at, e.text);
}

void apply_event(MutableState& state, Instant at, const event::ServiceScaled& e) {
  ServiceState& service = service_of(state, e.name);
  service.wanted = e.wanted;
  service.shape = e.shape;
  service.reason = e.reason;
  note(service, at, e.text);
}

void apply_event(MutableState& state, Instant at, const event::ServiceStepped& e) {
  ServiceState& service = service_of(state, e.name);
  for (ReplicaSet& set : service.sets)
    for (const event::SetPart& part : e.parts)
      if (part.revision == set.revision) set.part = part.part;
  service.stepped = at;
  note(service, at, e.text);
}

void apply_event(MutableState& state, Instant at, const event::ServiceNoted& e) {
  ServiceState& service = service_of(state, e.name);
  if (e.paused) service.paused = *e.paused;
  note(service, at, e.text);
}

void apply_event(MutableState& state, Instant, const event::ServiceHistory& e) {
  ServiceState& service = service_of(state, e.name);
  service.history.resize(scale::kHistory);
  // Spans without data, because the controller was down, count as spans without requests.
  const std::uint64_t passed = e.at > service.history_at ? e.at - service.history_at : 0;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(passed, scale::kHistory); ++i)
    service.history[(e.at - i) % scale::kHistory] = 0;
  service.history[e.at % scale::kHistory] = e.most;
  service.history_at = std::max(service.history_at, e.at);
}

void apply_event(MutableState& state, Instant, const event::ServiceRemoved& e) {
  state.services.all.erase(e.name);
  state.unfolded.services.push_back(e.name);
}

void apply_event(MutableState& state, Instant, const event::DoorGiven& e) {
  JobEdit job(state, e.job);
  GANTRY_ASSERT(job->active != nullptr, "a placed job");
  job->active->door = e.port;
}

}  // namespace gantry::core
