// What the jobs of each QOS, account and user hold and wait for, and what they have used up over
// time: the numbers that limits of use (ctld/core/limits) are compared with.
//
// Jobs with the same UseKey are counted together; the use of a QOS, an account or a user is the sum
// over its entries. What a placed job counts is in its Active, so it does not change while it runs.
#pragma once

#include <string>

#include "ctld/core/state/mutable_state.h"
#include "ctld/core/state/use_state.h"

namespace gantry::core {

// For apply() and loading only. A job counts as long as it waits or is placed.
void count_use(MutableState& state, const Job& job, bool add);
// Starts or ends charging what a placed job uses; like the charge of its share.
void start_use(MutableState& state, const Job& job, Instant at);
void end_use(MutableState& state, const Job& job, Instant at);
// Forgets what was used up; running jobs continue from zero.
void reset_use(MutableState& state, const std::string& key, Instant at);

UseKey use_key_of(const State& state, const Job& job);

// The key of a record of use.
std::string key_of_use(std::string_view qos);
std::string key_of_use(sched::ShareId share);

// Seconds of one TRES (or of wall time, if `tres` is "") that are used up at `now`.
double used_seconds(const State& state, const std::string& key, const std::string& tres,
                    Instant now);

std::string audit_uses(const State& state);  // for audit(): "" or what is wrong

}  // namespace gantry::core
