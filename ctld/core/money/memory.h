// BudgetMemory: jobs that wait for budgets, and when budgets and months have to be looked at. A
// restart empties it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "common/money/money.h"
#include "common/time/time.h"
#include "common/types.h"
#include "ctld/core/state/job.h"
#include "ctld/core/state/names.h"
#include "ctld/sched/change.h"

namespace gantry::core {

// A job that waits for a budget; see budget_gate.h.
struct BudgetGate {
  std::string budget;
  Money need;
  ClassId cls{};  // the budget made this class and account wait: others are tried again
  NameId account{};
};
// The cost of a start of this class when a budget last had too little left for it.
struct BudgetNeed {
  sched::ClassKey key;
  Money need;
};
// Jobs are being preempted to make room for this job: the cost of one start, and for how many
// starts (tasks of an array) there will be room.
struct BudgetClaim {
  Money need;
  std::uint32_t jobs = 0;
};

struct BudgetMemory {
  std::unordered_map<JobId, BudgetGate> gates;
  std::map<std::string, std::set<std::pair<Money, JobId>>>
      gated;  // by budget, then by the cost of a start
  std::unordered_map<ClassId, BudgetNeed> needs;
  std::map<JobId, BudgetClaim> claims;  // kept only while a budget makes jobs wait
  std::optional<Instant> month_due;     // when shared costs of a month are posted (posted.h)
  std::optional<Instant> budgets_due;   // when a period ends or a threshold may be reached
  Instant budgets_seen{};
};

}  // namespace gantry::core
