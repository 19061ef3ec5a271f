// The rules that a request for a step must keep, and the number that the step gets.
#pragma once

#include <cstdint>
#include <optional>

#include "common/proto/steps.h"
#include "common/result.h"
#include "ctld/core/context.h"
#include "ctld/core/request.h"

namespace gantry::core {

inline constexpr std::uint32_t kMaxStepTasks = 65'536;

// Errors: permission_denied if `who` is neither the job's owner nor an administrator;
// limit_exceeded if the request names too many tasks or nodes, or the job has had too many steps.
Result<void> check_step(const Context& ctx, const Identity& who, const Job& job,
                        const proto::StepCreate& message);

// Steps of a heterogeneous job are numbered through all of its components, and a step over several
// of them has one number: `part_of` is the number that its first part got.
StepId number_of_step(const State& state, const Job& job, std::optional<StepId> part_of);

}  // namespace gantry::core
