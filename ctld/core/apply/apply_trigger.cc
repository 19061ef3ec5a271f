// apply() of events about triggers.
#include <algorithm>

#include "common/assert.h"
#include "common/proto/triggers.h"
#include "ctld/core/apply.h"
#include "ctld/core/event/events_trigger.h"
#include "ctld/core/notify/triggers.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

TriggerState& known(MutableState& state, TriggerId id) {
  const auto it = state.triggers.all.find(id);
  GANTRY_ASSERT(it != state.triggers.all.end(), "events are about triggers that are set");
  return it->second;
}

void remove(MutableState& state, TriggerId id) {
  unindex_trigger(state.triggers, known(state, id));
  state.triggers.all.erase(id);
}

}  // namespace

void index_trigger(TriggerTable& table, const TriggerState& one) {
  const proto::Trigger& trigger = one.trigger;
  if (trigger.job) table.of_job[*trigger.job].insert(trigger.id);
  if (about_nodes(trigger)) table.of_nodes.insert(trigger.id);
  if (!one.pulls.empty()) table.pulls.emplace(one.pulls.front().due, trigger.id);
}

void unindex_trigger(TriggerTable& table, const TriggerState& one) {
  const proto::Trigger& trigger = one.trigger;
  if (trigger.job) {
    table.of_job[*trigger.job].erase(trigger.id);
    if (table.of_job[*trigger.job].empty()) table.of_job.erase(*trigger.job);
  }
  table.of_nodes.erase(trigger.id);
  if (!one.pulls.empty()) table.pulls.erase({one.pulls.front().due, trigger.id});
}

void forget_triggers(MutableState& state, JobId job) {
  const auto it = state.triggers.of_job.find(job);
  if (it == state.triggers.of_job.end()) return;
  const std::set<TriggerId> ids = it->second;
  for (const TriggerId id : ids) {
    if (!known(state, id).pulls.empty())
      continue;  // the trigger is removed when its program has run
    remove(state, id);
    state.unfolded.triggers.push_back(id);
  }
}

void apply_event(MutableState& state, Instant, const event::TriggerSet& e) {
  const TriggerId id = e.trigger.id;
  TriggerState& one = state.triggers.all[id];
  one.trigger = e.trigger;
  index_trigger(state.triggers, one);
  state.triggers.last = std::max(state.triggers.last, id);
  state.unfolded.triggers.push_back(id);
  state.unfolded.meta = true;
}

void apply_event(MutableState& state, Instant, const event::TriggerCleared& e) {
  remove(state, e.trigger);
  state.unfolded.triggers.push_back(e.trigger);
}

void apply_event(MutableState& state, Instant, const event::TriggerPulled& e) {
  TriggerState& one = known(state, e.trigger);
  unindex_trigger(state.triggers, one);
  const auto later = [](const TriggerPull& a, const TriggerPull& b) { return a.due < b.due; };
  TriggerPull pull{e.due, e.argument};
  one.pulls.insert(std::upper_bound(one.pulls.begin(), one.pulls.end(), pull, later), pull);
  if (e.on == proto::TriggerOn::time) one.timed = e.attempt;
  if (e.on == proto::TriggerOn::fini) one.ended = e.attempt;
  index_trigger(state.triggers, one);
  state.unfolded.triggers.push_back(e.trigger);
}

void apply_event(MutableState& state, Instant, const event::TriggerFired& e) {
  TriggerState& one = known(state, e.trigger);
  unindex_trigger(state.triggers, one);
  GANTRY_ASSERT(!one.pulls.empty(), "only what was pulled fires");
  one.pulls.erase(one.pulls.begin());
  index_trigger(state.triggers, one);
  const auto& job = one.trigger.job;
  const bool over = !one.trigger.permanent || (job && state.jobs.find(*job) == nullptr);
  if (over && one.pulls.empty()) remove(state, e.trigger);
  state.unfolded.triggers.push_back(e.trigger);
}

}  // namespace gantry::core
