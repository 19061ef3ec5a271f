// Works out what would happen if a waiting job asked for something else: fewer GPUs, a shorter
// time, another GPU model. The answer comes from a whole plan over the same view in which only that
// job is changed; the view is restored before the function returns. The plan is made without
// preemption, because an advice must not cost other jobs anything.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ctld/sched/cycle/schedule.h"

namespace gantry::sched {

struct Variant {
  ClassKey key;
  std::string change;   // "2 GPUs on each node instead of 4"
  std::string options;  // "--gpus-per-node=2"
};

// nullopt if the job does not wait, or the scheduler does not know it.
std::optional<ClassKey> key_of(const Replica& replica, JobId job);

// The changes that are worth trying for a job of this class; at most kMostVariants.
inline constexpr std::size_t kMostVariants = 8;
std::vector<Variant> variants_of(const ClassKey& key);

// Whether a start at `with` instead of `without` (not set if unknown) is worth a change of the job:
// it must be earlier by at least a minute, and by a tenth of the wait.
bool is_worth_it(Instant now, const std::optional<Instant>& without, Instant with);

// When the job would start with this key; `now` = at once. nullopt if never, or if the job is too
// far back in the queue to tell.
inline constexpr std::uint32_t kJobsEstimated = 500;
std::optional<Instant> start_if(Replica& replica, Instant now, const Policy& policy, JobId job,
                                const ClassKey& key);

}  // namespace gantry::sched
