// apply(): the only code that changes State. It reads nothing but the event and the state, never
// fails (an event that does not fit is our bug and asserts), and is the same when an event is fresh
// and when the journal is replayed.
//
// index.h is the lower half of apply(): the indexes that change when a job comes, goes or changes.
#pragma once

#include "common/time/time.h"
#include "ctld/core/event/events.h"
#include "ctld/core/state/mutable_state.h"

namespace gantry::core {

void apply(MutableState& state, Instant at, const Event& event);

// There is one apply_event() for each event, in apply_cluster.cc, apply_job.cc, apply_attempt.cc,
// apply_tenancy.cc and apply_budget.cc (apply_trigger.cc: triggers, apply_secret.cc: secrets,
// apply_service.cc: services).
void apply_event(MutableState&, Instant, const event::ControllerStarted&);
void apply_event(MutableState&, Instant, const event::NodeDeclared&);
void apply_event(MutableState&, Instant, const event::PartitionDeclared&);
void apply_event(MutableState&, Instant, const event::NodeRegistered&);
void apply_event(MutableState&, Instant, const event::NodeHealthChanged&);
void apply_event(MutableState&, Instant, const event::NodesLost&);
void apply_event(MutableState&, Instant, const event::NodeIntentChanged&);
void apply_event(MutableState&, Instant, const event::NodeNoted&);
void apply_event(MutableState&, Instant, const event::GpuDrained&);
void apply_event(MutableState&, Instant, const event::GpuResumed&);
void apply_event(MutableState&, Instant, const event::NodeEnrolled&);
void apply_event(MutableState&, Instant, const event::PartitionUpChanged&);
void apply_event(MutableState&, Instant, const event::PartitionSet&);
void apply_event(MutableState&, Instant, const event::KeyRegistered&);
void apply_event(MutableState&, Instant, const event::JobSubmitted&);
void apply_event(MutableState&, Instant, const event::JobHeld&);
void apply_event(MutableState&, Instant, const event::JobRevived&);
void apply_event(MutableState&, Instant, const event::JobReleased&);
void apply_event(MutableState&, Instant, const event::JobUpdated&);
void apply_event(MutableState&, Instant, const event::DependencySettled&);
void apply_event(MutableState&, Instant, const event::TaskDependencySettled&);
void apply_event(MutableState&, Instant, const event::TasksCancelled&);
void apply_event(MutableState&, Instant, const event::TaskSplit&);
void apply_event(MutableState&, Instant, const event::JobPlaced&);
void apply_event(MutableState&, Instant, const event::NodeReady&);
void apply_event(MutableState&, Instant, const event::JobStarted&);
void apply_event(MutableState&, Instant, const event::JobWarned&);
void apply_event(MutableState&, Instant, const event::JobFinishing&);
void apply_event(MutableState&, Instant, const event::NodeExited&);
void apply_event(MutableState&, Instant, const event::JobEnded&);
void apply_event(MutableState&, Instant, const event::JobRequeued&);
void apply_event(MutableState&, Instant, const event::JobsForgotten&);
void apply_event(MutableState&, Instant, const event::StepCreated&);
void apply_event(MutableState&, Instant, const event::StepEnded&);
void apply_event(MutableState&, Instant, const event::TriggerSet&);
void apply_event(MutableState&, Instant, const event::TriggerCleared&);
void apply_event(MutableState&, Instant, const event::TriggerPulled&);
void apply_event(MutableState&, Instant, const event::TriggerFired&);
void apply_event(MutableState&, Instant, const event::TenancyApplied&);
void apply_event(MutableState&, Instant, const event::ReservationSet&);
void apply_event(MutableState&, Instant, const event::ReservationRemoved&);
void apply_event(MutableState&, Instant, const event::QuotaFilled&);
void apply_event(MutableState&, Instant, const event::UseReset&);
void apply_event(MutableState&, Instant, const event::JobCheckpointed&);
void apply_event(MutableState&, Instant, const event::HalfLifeSet&);
void apply_event(MutableState&, Instant, const event::GpusIdle&);
void apply_event(MutableState&, Instant, const event::BudgetReached&);
void apply_event(MutableState&, Instant, const event::BudgetsRolled&);
void apply_event(MutableState&, Instant, const event::JobLowered&);
void apply_event(MutableState&, Instant, const event::OvertimeSet&);
void apply_event(MutableState&, Instant, const event::IncreaseSet&);
void apply_event(MutableState&, Instant, const event::ChargesPosted&);
void apply_event(MutableState&, Instant, const event::JobSuspended&);
void apply_event(MutableState&, Instant, const event::JobResumed&);
void apply_event(MutableState&, Instant, const event::NodeFrozen&);
void apply_event(MutableState&, Instant, const event::SecretSet&);
void apply_event(MutableState&, Instant, const event::SecretRemoved&);
void apply_event(MutableState&, Instant, const event::SecretsTaken&);
void apply_event(MutableState&, Instant, const event::ServiceSet&);
void apply_event(MutableState&, Instant, const event::ServiceScaled&);
void apply_event(MutableState&, Instant, const event::ServiceStepped&);
void apply_event(MutableState&, Instant, const event::ServiceNoted&);
void apply_event(MutableState&, Instant, const event::ServiceRemoved&);
void apply_event(MutableState&, Instant, const event::DoorGiven&);
void apply_event(MutableState&, Instant, const event::ServiceHistory&);
void apply_event(MutableState&, Instant, const event::NodesGivenBack&);
void apply_event(MutableState&, Instant, const event::StepLimitSet&);
void apply_event(MutableState&, Instant, const event::EnrollTokenMade&);
void apply_event(MutableState&, Instant, const event::EnrollTokensGone&);
void apply_event(MutableState&, Instant, const event::JobNoted&);
void apply_event(MutableState&, Instant, const event::HistoryReplaced&);

// Removes all secrets of a tenant that is removed.
void forget_secrets(MutableState& state, const std::string& tenant);

// Adds the next revision of the documents to the history and removes the oldest ones beyond
// kMaxRevisions and kMaxRevisionBytes. Only this function changes the history.
void keep_revision(MutableState& state, TenancyRevision&& revision);

}  // namespace gantry::core
