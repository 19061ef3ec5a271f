// The structs of all events, for the few files that deal with each of them: the dispatch of apply()
// and the journal's codec. Other files include the header of the events that they use, and event.h
// for an event of any kind. events.def lists the events.
#pragma once

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
