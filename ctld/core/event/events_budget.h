// Events of budgets and of increases; see events.h. There is no event for what is spent, because
// that is derived from the events of jobs.
#pragma once

#include <map>
#include <string>

#include "common/proto/budget.h"
#include "common/proto/tenant_events.h"
#include "common/types.h"
#include "ctld/core/event/event_fields.h"

namespace gantry::core::event {

struct BudgetReached {  // a threshold was reached; the alert says which
  proto::QuotaAlert alert;
  GANTRY_EVENT(60, "budget_reached") { FIELD(1, alert); }
};

struct BudgetsRolled {                         // bills are settled at the end of budget periods
  std::map<std::string, std::string> periods;  // by budget; "" = not begun, or over
  GANTRY_EVENT(61, "budgets_rolled") { FIELD(1, periods); }
};

struct JobLowered {  // a budget moves the job into a lower class, or back into its own
  JobId job{};
  std::uint32_t priority_class = 0;  // index into TenancyState::class_names
  bool lowered = true;               // false: the job goes back into its own class
  GANTRY_EVENT(62, "job_lowered") { FIELD(1, job), FIELD(2, priority_class), FIELD(3, lowered); }
};

struct OvertimeSet {  // a change of the configuration
  Duration kill_wait{};
  Duration start_timeout{};
  GANTRY_EVENT(63, "overtime_set") { FIELD(1, kill_wait), FIELD(2, start_timeout); }
};

struct IncreaseSet {  // an increase of quota was asked for, decided, or has ended
  proto::Increase increase;
  GANTRY_EVENT(64, "increase_set") { FIELD(1, increase); }
};

}  // namespace gantry::core::event
