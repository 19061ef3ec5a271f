// What documents say about a job that is submitted or changed: which GPUs its user may ask for,
// which labels it must have, and the policies of the cluster and of its tenant.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ctld/core/context.h"
#include "ctld/core/event/events.h"
#include "ctld/core/event/events_job.h"
#include "ctld/core/request.h"

namespace gantry::core {

inline constexpr std::size_t kMaxLabels = 32;  // labels of a job
inline constexpr std::size_t kMaxLabelBytes = 255;

// Whether labels have sound keys and values.
Result<void> check_labels(const std::map<std::string, std::string>& labels);

// Refuses GPUs that no role of the asker allows in the job's tenant. A job that names no model gets
// the ones that the roles allow.
Result<void> allow_gpus(const State& state, const Identity& who, const Partition& partition,
                        JobShape& shape);

// Gives the job its tenant's default labels, and refuses it if one is missing or has a value that
// is not allowed.
Result<void> apply_label_rules(const State& state, const Partition& partition,
                               std::map<std::string, std::string>& labels);

// Asks the policies about the job (common/policy/judge.h), fills in what they say, and then applies
// the rules about labels. `warnings` gets a sentence for each policy that warns; what policies in
// the mode audit would have done becomes a note of the controller.
Result<void> apply_rules(Context& ctx, const Identity& who, const Partition& partition,
                         std::optional<Duration> limit, JobSpec& spec,
                         std::vector<std::string>& warnings);

// Whether the rules allow a change of a job. A policy that denies the job as it is already denies
// no change; so a new policy does not keep anybody from making an old job smaller.
Result<void> rules_allow(const Context& ctx, const Identity& who, const Job& job,
                         const event::JobUpdated& change);

}  // namespace gantry::core
