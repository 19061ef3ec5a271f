// How a changed version of a service replaces the one before: how many replicas each should have,
// and when requests move to the new one, or back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/tenancy/tenancy_service.h"
#include "common/time/time.h"
#include "ctld/scale/load.h"

namespace gantry::scale {

// Facts about one set of replicas (ReplicaSet) since the rollout's last step.
struct SetFacts {
  std::uint32_t part = 0;      // thousandths of the version's requests
  std::uint32_t ready = 0;     // replicas that can take requests
  std::uint32_t failures = 0;  // replicas that ended, or were too late, before they were ready
  std::uint64_t requests = 0, errors = 0;
  TimeCounts times;
};

struct RolloutFacts {
  std::uint32_t wanted = 0;  // replicas of the version
  Instant now{};
  Instant stepped{};  // when the rollout began, or took its last step
  SetFacts before, fresh;
};

struct RolloutStep {
  enum class Kind : std::uint8_t {
    wait,    // no change
    move,    // move `part` of the requests to the new set
    finish,  // remove the old set
    back,    // roll back: remove the new set
  };
  Kind kind = Kind::wait;
  std::uint32_t part = 0;
  std::string why;  // for people: the numbers that led to the step
};

// How many replicas each set should have now.
struct SetCounts {
  std::uint32_t before = 0, fresh = 0;
};
SetCounts counts_of(const tenancy::ServiceRollout& how, const RolloutFacts& facts);

RolloutStep next_step(const tenancy::ServiceRollout& how, Duration target, std::uint32_t percentile,
                      const RolloutFacts& facts);

// The part of the requests with which a new set begins.
std::uint32_t first_part(const tenancy::ServiceRollout& how);

}  // namespace gantry::scale
