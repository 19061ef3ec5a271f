// Licences of the whole cluster: how many of each are in use, and who waits for them.
//
// They are no dimension of the scheduler's search: a job that has not enough of one is kept from it
// (eligible.h) until they are free, and the re-check of a plan gives no more than there are. So
// nothing is reserved for a job that waits for licences, as Slurm without bf_licenses.
#pragma once

#include <optional>
#include <string>

#include "ctld/core/context.h"
#include "ctld/core/state/mutable_state.h"

namespace gantry::core {

// That these may ever be had: declared, and so many.
Result<void> check_licenses(const State& state, const JobShape& shape);
bool licenses_free(const State& state, const JobShape& shape);
// How many times what the job asks for is free now; the greatest number if it asks for none.
std::uint32_t licensed_starts(const State& state, const Job& job);
std::optional<Verdict> verdict_of_licenses(const State& state, const Job& job);

// apply() only. Those who wait and may start now, or may not any more, are touched.
void take_licenses(MutableState& state, const Job& job);
void give_licenses(MutableState& state, const Job& job);
void wait_for_licenses(MutableState& state, const Job& job, bool waits);

std::string audit_licenses(const State& state);  // for audit(): "" or what is wrong

}  // namespace gantry::core
