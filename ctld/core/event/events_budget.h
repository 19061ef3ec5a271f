// Events of budgets and of increases; see events.h. There is no event for what is spent, because
// that is derived from the events of jobs.
#pragma once

#include <map>
#include <string>

#include "common/proto/budget.h"
#include "common/proto/tenant_events.h"
#include "ctld/core/event/event_fields.h"

namespace gantry::core::event {

struct BudgetReached {  // a threshold was reached; the alert says which
  proto::QuotaAlert alert;
  GANTRY_EVENT(60, "budget_reached") { v(1, "alert", s.alert); }
};

struct BudgetsRolled {  // budgets entered other periods; bills are brought up to date
  std::map<std::string, std::string> periods;  // by budget; "" = not begun, or over
  GANTRY_EVENT(61, "budgets_rolled") { v(1, "periods", s.periods); }
};

struct JobLowered {  // a budget moves it into a lower class, or back into its own
  JobId job{};
  std::uint32_t priority_class = 0;  // index into TenancyState::class_names
  bool lowered = true;               // false: back into its own class
  GANTRY_EVENT(62, "job_lowered") {
    v(1, "job", s.job);
    v(2, "priority_class", s.priority_class);
    v(3, "lowered", s.lowered);
  }
};

struct OvertimeSet {  // a change of the configuration
  Duration kill_wait{};
  Duration start_timeout{};
  GANTRY_EVENT(63, "overtime_set") {
    v(1, "kill_wait", s.kill_wait);
    v(2, "start_timeout", s.start_timeout);
  }
};

struct IncreaseSet {  // an increase was asked for, decided, or is over
  proto::Increase increase;
  GANTRY_EVENT(64, "increase_set") { v(1, "increase", s.increase); }
};

}  // namespace gantry::core::event
