// Usage in the fair-share tree: who has been charged how much, decayed; see
// ctld/sched/tenant/decay.h.
//
// A job is charged from its placement until its last node is released. The rate is in the event of
// the placement, so replaying it needs no prices. apply() and loading use these functions.
#pragma once

#include "ctld/core/state/mutable_state.h"

namespace gantry::core {

// The leaf of a tenant's user in a project; it is made with its parents if it does not exist.
// `tenant` is the partition's name.
sched::ShareId share_for(MutableState& state, const std::string& tenant, const std::string& project,
                         const std::string& user);

// Sets the job's leaf by its partition's tenant, its account and its user; none without a tenant.
void set_share(MutableState& state, Job& job);

void start_charge(MutableState& state, const Job& job, Instant at);  // at rate job.active->charge
void end_charge(MutableState& state, const Job& job, Instant at);

// True if this user has had a job of this tenant.
bool has_share(const State& state, const std::string& tenant, const std::string& user);

// The rate for a job that holds these grants, in charge units per second, by the flavors of the
// compiled documents.
double charge_of(const State& state, const std::vector<sched::NodeGrant>& grants);

}  // namespace gantry::core
