// The sub-commands of gtenant. Each file cmd_gtenant_NAME.cc has a namespace gtenant_NAME.
#pragma once

#include "cli/command.h"
#include "cli/tenancy/tenancy_plan.h"

namespace gantry::cli {

namespace gtenant_access {
extern const Command kTenantAccess;
}
namespace gtenant_apply {
extern const Command kTenantApply, kTenantDiff, kTenantCheck, kTenantDelete, kTenantRollback;
}
namespace gtenant_budget {
extern const Command kTenantBudget;
}
namespace gtenant_events {
extern const Command kTenantEvents;
}
namespace gtenant_import {
extern const Command kTenantImport;
}
namespace gtenant_make {
extern const Command kTenantCreate;
}
namespace gtenant_meter {
extern const Command kTenantMeter;
}
namespace gtenant_offboard {
extern const Command kTenantOffboard;
}
namespace gtenant_policy {
extern const Command kTenantPolicy;
}
namespace gtenant_price {
extern const Command kTenantPrice;
}
namespace gtenant_request {
extern const Command kTenantRequest;
}
namespace gtenant_secret {
extern const Command kTenantSecret;
}
namespace gtenant_show {
extern const Command kTenantGet, kTenantExport, kTenantHistory;
}
namespace gtenant_use {
extern const Command kTenantList, kTenantQuota;
}

inline constexpr Option kJsonOption[] = {
    flag("json", "As JSON", put<&PlanOptions::json>),
};

}  // namespace gantry::cli
