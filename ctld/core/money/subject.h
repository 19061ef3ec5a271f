// The subjects of this folder; see ctld/core/subject.h.
#pragma once

#include "ctld/core/subject.h"

namespace gantry::core {

extern const Subject kMonths, kBudgets;
// What messages are handled here.
extern const Subject kBudgetMessages, kLedgerMessages, kPostedMessages;

}  // namespace gantry::core
