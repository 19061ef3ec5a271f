// Licences of the whole cluster: how many of each are in use, and which jobs wait for them.
//
// The scheduler's search does not know licences. A job for which too few are free is kept from the
// scheduler (job/subject.h), and the re-check of a plan gives no more than there are. So nothing is
// reserved for a job that waits for licences, as in Slurm without bf_licenses.
#pragma once

#include <optional>
#include <string>

#include "ctld/core/context.h"
#include "ctld/core/state/mutable_state.h"

namespace gantry::core {

// Refuses a job whose licences are not declared, or not in this number.
Result<void> check_licenses(const State& state, const JobShape& shape);
bool licenses_free(const State& state, const JobShape& shape);
// How many starts of this job the free licences allow now; the greatest number if it asks for none.
std::uint32_t licensed_starts(const State& state, const Job& job);
std::optional<Verdict> verdict_of_licenses(const State& state, const Job& job);

// Sets for the licences of documents (NAME@SERVER) the number that this cluster may give out.
void set_shared_licenses(MutableState& state, const std::string& cluster);

// For apply() only. Waiting jobs that may start now, or may not start any more, are touched.
void take_licenses(MutableState& state, const Job& job);
void give_licenses(MutableState& state, const Job& job);
void wait_for_licenses(MutableState& state, const Job& job, bool waits);

std::string audit_licenses(const State& state);  // for audit(): "" or what is wrong

}  // namespace gantry::core
