// Triggers (strigger): when the event that a trigger waits for happens to a job or to nodes, the
// controller's shell runs the trigger's program (ctld/programs.h) as the user who set it.
//
// There are two steps, each an event. The trigger is pulled in the same turn in which its event
// happens, and it fires when its offset is over. The program is started after the commit of
// TriggerFired. It is not started again after a crash, because running twice would be worse than
// not running.
#pragma once

#include <optional>

#include "common/proto/triggers.h"
#include "ctld/core/context.h"
#include "ctld/core/state/mutable_state.h"

namespace gantry::core {

bool about_nodes(const proto::Trigger& trigger);  // true for conditions other than fini and time

// For apply() and loading: these keep the derived tables in step.
void index_trigger(TriggerTable& table, const TriggerState& one);
void unindex_trigger(TriggerTable& table, const TriggerState& one);
// For apply(): removes the triggers of a job that is no longer known.
void forget_triggers(MutableState& state, JobId job);

// For settle: pulls triggers that wait for the present state of this job, or of the nodes in
// ctx.touched.trigger_nodes, which is emptied.
void pull_triggers(Context& ctx, const Job& job);
void pull_triggers(Context& ctx);
// Lets nodes that are already idle count for a trigger that was just set.
void watch_idle(Context& ctx, const TriggerState& one);
// Pulls triggers that wait for the configuration to be read again.
void pull_reconfigured(Context& ctx);
// Fires the triggers that are due now.
void fire_triggers(Context& ctx);

// When a trigger on the job's time limit is due; unset if there is none, or it was pulled.
std::optional<Instant> trigger_due(const Context& ctx, const Job& job);
std::optional<Instant> next_trigger(const Context& ctx);

}  // namespace gantry::core
