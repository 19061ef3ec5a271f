// The sub-commands of gtenant. Each file cmd_gtenant_NAME.cc has a namespace gtenant_NAME.
#pragma once

#include "cli/command.h"
#include "cli/tenancy/tenancy_plan.h"

namespace gantry::cli {

COMMANDS(gtenant_access, kTenantAccess)
COMMANDS(gtenant_apply, kTenantApply, kTenantDiff, kTenantCheck, kTenantDelete, kTenantRollback)
COMMANDS(gtenant_budget, kTenantBudget)
COMMANDS(gtenant_events, kTenantEvents)
COMMANDS(gtenant_import, kTenantImport)
COMMANDS(gtenant_make, kTenantCreate)
COMMANDS(gtenant_meter, kTenantMeter)
COMMANDS(gtenant_offboard, kTenantOffboard)
COMMANDS(gtenant_policy, kTenantPolicy)
COMMANDS(gtenant_price, kTenantPrice)
COMMANDS(gtenant_request, kTenantRequest)
COMMANDS(gtenant_secret, kTenantSecret)
COMMANDS(gtenant_show, kTenantGet, kTenantExport, kTenantHistory)
COMMANDS(gtenant_use, kTenantList, kTenantQuota)

inline constexpr Option kJsonOption[] = {
    flag("json", "As JSON", put<&PlanOptions::json>),
};

}  // namespace gantry::cli
