// Tenancy's part in the start of jobs and in time: who is admitted, roles that end, priorities.
#include "ctld/core/tenancy/subject.h"

#include "common/job/job_state.h"
#include "ctld/core/state/state.h"
#include "ctld/core/tenancy/admission.h"
#include "ctld/core/tenancy/multifactor.h"
#include "ctld/core/tenancy/tenants.h"

namespace gantry::core {
namespace {

std::optional<Verdict> check_admitted(const Context& ctx, const Job& job) {
  return verdict_of_admission(ctx.state, job);
}

std::optional<Instant> next_end_of_role(const Context& ctx) {
  return ctx.state.tenancy.compiled.next_end;
}

void end_roles(Context& ctx) {
  ctx.note("grants of roles have ended");
  compile_tenancy(ctx);
}

}  // namespace

const Subject kAdmission{.name = "admission", .check = check_admitted};
const Subject kRoles{.name = "roles", .due = next_end_of_role, .ring = end_roles};
const Subject kPriority{.name = "priority", .start = reckon, .due = next_reckoning, .ring = reckon};

}  // namespace gantry::core
