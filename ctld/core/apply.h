// apply(): the only code that changes State. It reads nothing but the event and the state, never
// fails (an event that does not fit is our bug and asserts), and is the same when an event is fresh
// and when the journal is replayed.
//
// index.h is the lower half of apply(): the indexes that change when a job comes, goes or changes.
#pragma once

#include "common/time/time.h"
#include "ctld/core/event/event.h"
#include "ctld/core/state/mutable_state.h"

namespace gantry::core {

namespace event {
#define X(Name) struct Name;
#include "ctld/core/event/events.def"
#undef X
}  // namespace event

void apply(MutableState& state, Instant at, EventRef event);

// There is one apply_event() for each event: in apply_cluster.cc, apply_job.cc and the other files
// of apply/, or in the file of the folder that owns what the event changes (such as
// money/posted.cc).
#define X(Name) void apply_event(MutableState&, Instant, const event::Name&);
#include "ctld/core/event/events.def"
#undef X

// Removes all secrets of a tenant that is removed.
void forget_secrets(MutableState& state, const std::string& tenant);

// Adds the next revision of the documents to the history and removes the oldest ones beyond
// kMaxRevisions and kMaxRevisionBytes. Only this function changes the history.
void keep_revision(MutableState& state, TenancyRevision&& revision);

}  // namespace gantry::core
