// The tenants of a history: the documents applied at its beginning, the changes requested later
// (also those that must be refused), and the fields that assign a job to a tenant.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/proto/job_submit.h"
#include "common/proto/tenancy.h"
#include "ctld/core/state/tenancy_compile.h"
#include "tests/sim/random.h"
#include "tests/sim/settings.h"

namespace gantry::sim {

// A change with this comment must never be applied.
inline constexpr std::string_view kMustFail = "must be refused";

// Draws two to six tenants in nested cohorts, quota of the cluster's cores, memory and GPUs,
// flavors, classes that preempt and have a short grace, sometimes pools and a topology. The
// documents are correct, so refusing them is a bug.
std::vector<tenancy::Document> draw_tenants(Random& random, const Settings& settings);

// `now` are the present documents.
proto::ApplyTenancy draw_tenancy_change(Random& random, const Settings& settings,
                                        const core::Documents& now);
// Draws a change by a user who is no administrator: one that a tenant's admin may make, or one that
// must be refused.
proto::ApplyTenancy draw_own_change(Random& random, const core::Documents& now,
                                    const std::string& user);

// Draws queue, class, project, GPUs and topology of a job.
void draw_tenancy_of(Random& random, const core::Documents& now, const std::string& user,
                     JobSpec& spec);

// A job of 1 to 4 GPUs, or of 8 to 32 on whole nodes.
void draw_gang_of(Random& random, const Settings& settings, JobShape& shape);

}  // namespace gantry::sim
