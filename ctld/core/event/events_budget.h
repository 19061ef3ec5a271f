// Events of budgets and of increases; see events.h. What is spent needs none: it is derived from
// the events of jobs.
#pragma once

#include <map>
#include <string>

#include "common/proto/budget.h"
#include "common/proto/tenant_events.h"
#include "ctld/core/event/event_fields.h"

namespace gantry::core::event {

struct BudgetReached {  // a threshold; the alert says which
  proto::QuotaAlert alert;
  GANTRY_EVENT(60, "budget_reached") { v(1, "alert", s.alert); }
};

struct BudgetsRolled {  // other periods have begun; bills are brought up to date
  std::map<std::string, std::string> periods;  // by budget; "" = none: not begun, or over
  GANTRY_EVENT(61, "budgets_rolled") { v(1, "periods", s.periods); }
};

struct JobLowered {  // into the class that its budget says, or back into its own
  JobId job{};
  std::uint32_t priority_class = 0;  // index into TenancyState::class_names
  bool lowered = true;               // false: its own
  GANTRY_EVENT(62, "job_lowered") {
    v(1, "job", s.job);
    v(2, "priority_class", s.priority_class);
    v(3, "lowered", s.lowered);
  }
};

struct OvertimeSet {  // from the configuration
  Duration kill_wait{};
  Duration start_timeout{};
  GANTRY_EVENT(63, "overtime_set") {
    v(1, "kill_wait", s.kill_wait);
    v(2, "start_timeout", s.start_timeout);
  }
};

struct IncreaseSet {  // asked for, decided, or over
  proto::Increase increase;
  GANTRY_EVENT(64, "increase_set") { v(1, "increase", s.increase); }
};

}  // namespace gantry::core::event
