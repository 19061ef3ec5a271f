// The tenants of a history: the documents that are applied at its beginning, what is asked of them
// while it goes on (also what must be refused), and what makes a job one of a tenant's.
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

// Two to six tenants in nested cohorts, quota over the cluster's cores, memory and GPUs, flavors,
// classes that preempt and leave soon, sometimes pools and a topology. Sound: refusing it is a bug.
std::vector<tenancy::Document> draw_tenants(Random& random, const Settings& settings);

// `now`: the documents as they are.
proto::ApplyTenancy draw_tenancy_change(Random& random, const Settings& settings,
                                        const core::Documents& now);
// By somebody who is no administrator: what is a tenant's admin's own, or what must be refused.
proto::ApplyTenancy draw_own_change(Random& random, const core::Documents& now,
                                    const std::string& user);

// Queue, class, project, GPUs, topology.
void draw_tenancy_of(Random& random, const core::Documents& now, const std::string& user,
                     JobSpec& spec);

// A job of 1 to 4 GPUs, or of 8 to 32 on whole nodes.
void draw_gang_of(Random& random, const Settings& settings, JobShape& shape);

}  // namespace gantry::sim
