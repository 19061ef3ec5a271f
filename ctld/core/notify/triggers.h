// Triggers (strigger): when what they wait for happens to a job or to nodes, the controller's shell
// runs their programs (ctld/programs.h), as the users who set them.
//
// Two steps, each an event: a trigger is pulled by what happens, in the same turn, and fires when
// its offset is over. The program is started after the commit of TriggerFired and not again after a
// crash: one that runs twice would be worse than one that does not run.
#pragma once

#include <optional>

#include "ctld/core/context.h"
#include "ctld/core/state/mutable_state.h"

namespace gantry::core {

bool about_nodes(const proto::Trigger& trigger);  // not fini, not time

// For apply() and load: the derived tables.
void index_trigger(TriggerTable& table, const TriggerState& one);
void unindex_trigger(TriggerTable& table, const TriggerState& one);
// For apply(): the job is no longer known.
void forget_triggers(MutableState& state, JobId job);

// Settle: pulls what waits for what this job has come to; and the nodes of
// ctx.touched.trigger_nodes, which are taken.
void pull_triggers(Context& ctx, const Job& job);
void pull_triggers(Context& ctx);
// Nodes that are idle already begin to count for a trigger that was just set.
void watch_idle(Context& ctx, const TriggerState& one);
// What waits for the configuration to be read again.
void pull_reconfigured(Context& ctx);
// What is due now.
void fire_triggers(Context& ctx);

// When a trigger of the job's time limit is due; unset: there is none, or it was pulled.
std::optional<Instant> trigger_due(const Context& ctx, const Job& job);
std::optional<Instant> next_trigger(const Context& ctx);

}  // namespace gantry::core
