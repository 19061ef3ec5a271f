// The fair-share tree's usage: who has been charged how much, decayed; see
// ctld/sched/tenant/decay.h.
//
// A job is charged from placement until its last node has let go, at a rate that the placement's
// event carries (so that replaying it needs no prices). Used by apply() and by loading.
#pragma once

#include "ctld/core/state/mutable_state.h"

namespace gantry::core {

// The leaf of a tenant's user in a project; made with its parents when it is new. `tenant` is the
// partition's name.
sched::ShareId share_for(MutableState& state, const std::string& tenant, const std::string& project,
                         const std::string& user);

// The job's leaf: of its partition's tenant, its account and user; none without a tenant.
void set_share(MutableState& state, Job& job);

void start_charge(MutableState& state, const Job& job, Instant at);  // with job.active->charge
void end_charge(MutableState& state, const Job& job, Instant at);

// Has this user had a job of this tenant?
bool has_share(const State& state, const std::string& tenant, const std::string& user);

// The charge of a job while it holds these grants, in charge units per second, by the flavors of
// the compiled documents.
double charge_of(const State& state, const std::vector<sched::NodeGrant>& grants);

}  // namespace gantry::core
