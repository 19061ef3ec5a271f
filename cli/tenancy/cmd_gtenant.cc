// gtenant: tenants and everything that belongs to them, as documents.
#include "cli/tenancy/cmd_gtenant.h"

namespace gantry::cli::gtenant {
namespace {

constexpr const Command* kSub[] = {
    &gtenant_apply::kTenantApply,     &gtenant_apply::kTenantDiff,
    &gtenant_apply::kTenantCheck,     &gtenant_show::kTenantGet,
    &gtenant_show::kTenantExport,     &gtenant_apply::kTenantDelete,
    &gtenant_show::kTenantHistory,    &gtenant_apply::kTenantRollback,
    &gtenant_make::kTenantCreate,     &gtenant_offboard::kTenantOffboard,
    &gtenant_use::kTenantList,        &gtenant_use::kTenantQuota,
    &gtenant_events::kTenantEvents,   &gtenant_price::kTenantPrice,
    &gtenant_budget::kTenantBudget,   &gtenant_meter::kTenantMeter,
    &gtenant_request::kTenantRequest, &gtenant_secret::kTenantSecret,
    &gtenant_import::kTenantImport,   &gtenant_access::kTenantAccess,
    &gtenant_policy::kTenantPolicy};

}  // namespace

extern const Command kGtenant;
const Command kGtenant{
    {"gtenant", "Create, change and show tenants, their quota and who may use them"},
    {.description = "A tenant is a team with a queue of its own (`gbatch -p NAME`), quota that it "
                    "owns, borrows and lends, projects and roles. docs/tenancy.md explains it with "
                    "examples.",
     .examples = {{"gtenant create fraud --gpus 64 --cpus 512 --borrow 128 --lend 32 --admin alice",
                   "A new tenant, in one step"},
                  {"gtenant apply -f tenants/", "Documents and manifests of a folder"},
                  {"gtenant quota fraud", "What it holds, owns and may borrow"},
                  {"gtenant history tenant fraud", "Who changed it, and why"}},
     .exits = {{"0", "done"},
               {"1", "refused, unknown, or no answer"},
               {"2", "the command line is wrong"}},
     .sub = kSub}};

}  // namespace gantry::cli::gtenant
