// The sub-commands of gtenant, by file.
#pragma once

#include "cli/command.h"
#include "cli/tenancy/tenancy_plan.h"

namespace gantry::cli {

extern const Command kTenantApply, kTenantDiff, kTenantCheck, kTenantDelete, kTenantRollback;
extern const Command kTenantGet, kTenantExport, kTenantHistory;
extern const Command kTenantList, kTenantQuota, kTenantEvents;
extern const Command kTenantCreate, kTenantOffboard, kTenantPrice;
extern const Command kTenantBudget, kTenantMeter, kTenantRequest, kTenantSecret, kTenantImport;
extern const Command kTenantAccess, kTenantPolicy;

inline constexpr Option kJsonOption[] = {
    {.name = "json", .help = "As JSON", .set = put<&PlanOptions::json>},
};

Result<std::uint64_t> parse_revision(std::string_view text);

}  // namespace gantry::cli
