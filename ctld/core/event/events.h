// Events: the facts that make up State, in the order in which they became true. The journal is a
// list of these; apply() is the only reader. Kinds and field numbers are permanent, and
// tests/golden/events.txt lists them, so a change shows in review.
//
// An event says what was decided, with every number that the decision needed: apply() reads no
// configuration and no clock.
#pragma once

#include <variant>

#include "ctld/core/event/events_attempt.h"
#include "ctld/core/event/events_budget.h"
#include "ctld/core/event/events_cluster.h"
#include "ctld/core/event/events_job.h"
#include "ctld/core/event/events_ledger.h"
#include "ctld/core/event/events_secret.h"
#include "ctld/core/event/events_service.h"
#include "ctld/core/event/events_shrink.h"
#include "ctld/core/event/events_tenancy.h"
#include "ctld/core/event/events_trigger.h"

namespace gantry::core {

using Event = std::variant<
    event::ControllerStarted, event::NodeDeclared, event::PartitionDeclared, event::NodeRegistered,
    event::NodeHealthChanged, event::NodeIntentChanged, event::NodeEnrolled,
    event::PartitionUpChanged, event::KeyRegistered, event::JobSubmitted, event::JobHeld,
    event::JobReleased, event::JobUpdated, event::DependencySettled, event::TaskDependencySettled,
    event::TasksCancelled, event::TaskSplit, event::JobPlaced, event::NodeReady, event::JobStarted,
    event::JobWarned, event::JobFinishing, event::NodeExited, event::JobEnded, event::JobRequeued,
    event::JobsForgotten, event::StepCreated, event::StepEnded, event::TenancyApplied,
    event::ReservationSet, event::ReservationRemoved, event::JobCheckpointed, event::HalfLifeSet,
    event::QuotaFilled, event::BudgetReached, event::BudgetsRolled, event::JobLowered,
    event::OvertimeSet, event::IncreaseSet, event::ChargesPosted, event::GpusIdle,
    event::JobSuspended, event::JobResumed, event::NodeFrozen, event::GpuDrained, event::GpuResumed,
    event::NodesLost, event::TriggerSet, event::TriggerCleared, event::TriggerPulled,
    event::TriggerFired, event::PartitionSet, event::JobRevived, event::NodeNoted, event::UseReset,
    event::SecretSet, event::SecretRemoved, event::SecretsTaken, event::ServiceSet,
    event::ServiceScaled, event::ServiceStepped, event::ServiceNoted, event::ServiceRemoved,
    event::DoorGiven, event::NodesGivenBack, event::StepLimitSet, event::EnrollTokenMade,
    event::EnrollTokensGone, event::ServiceHistory, event::JobNoted, event::HistoryReplaced>;

// An event as it stands in the journal.
struct JournalEvent {
  Instant at{};
  Event event;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "at", s.at);
    v(2, "event", s.event);
  }
};

}  // namespace gantry::core
