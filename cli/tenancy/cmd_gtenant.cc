// gtenant: tenants and everything that belongs to them, as documents.
#include "cli/tenancy/cmd_gtenant.h"

#include "common/text/text.h"

namespace gantry::cli {
namespace {

constexpr const Command* kSub[] = {
    &kTenantApply,  &kTenantDiff,    &kTenantCheck,    &kTenantGet,    &kTenantExport,
    &kTenantDelete, &kTenantHistory, &kTenantRollback, &kTenantCreate, &kTenantOffboard,
    &kTenantList,   &kTenantQuota,   &kTenantEvents,   &kTenantPrice,  &kTenantBudget,
    &kTenantMeter,  &kTenantRequest, &kTenantSecret,   &kTenantImport, &kTenantAccess,
    &kTenantPolicy};

constexpr Example kExamples[] = {
    {"gtenant create fraud --gpus 64 --cpus 512 --borrow 128 --lend 32 --admin alice",
     "A new tenant, in one step"},
    {"gtenant apply -f tenants/", "Documents and manifests of a folder"},
    {"gtenant quota fraud", "What it holds, owns and may borrow"},
    {"gtenant history tenant fraud", "Who changed it, and why"},
};
constexpr ExitDoc kExits[] = {
    {"0", "done"}, {"1", "refused, unknown, or no answer"}, {"2", "the command line is wrong"}};

}  // namespace

Result<std::uint64_t> parse_revision(std::string_view text) {
  ASSIGN(number, parse_integer("the revision", text, 1, INT64_MAX));
  return static_cast<std::uint64_t>(*number);
}

extern const Command kGtenant;
const Command kGtenant{
    .name = "gtenant",
    .summary = "Create, change and show tenants, their quota and who may use them",
    .description =
        "A tenant is a team with a queue of its own (`gbatch -p NAME`), quota that it "
        "owns, borrows and lends, projects and roles. docs/tenancy.md explains it with "
        "examples.",
    .examples = kExamples,
    .exits = kExits,
    .run = nullptr,
    .sub = kSub,
};

}  // namespace gantry::cli
