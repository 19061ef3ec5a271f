// How a changed version of a service comes in place of the one before it: how many replicas of each
// there are to be, and when requests move on, or go back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/tenancy/tenancy_service.h"
#include "common/time/time.h"
#include "ctld/scale/load.h"

namespace gantry::scale {

// Of one set of replicas (ReplicaSet), since the rollout's last step.
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
  Instant stepped{};  // when the rollout began, or made its last step
  SetFacts before, fresh;
};

struct RolloutStep {
  enum class Kind : std::uint8_t {
    wait,    // nothing changes
    move,    // `part` of the requests go to the fresh set
    finish,  // the set before goes
    back,    // the fresh set goes
  };
  Kind kind = Kind::wait;
  std::uint32_t part = 0;
  std::string why;  // for people: the numbers that led to it
};

// How many replicas each set is to have now.
struct SetCounts {
  std::uint32_t before = 0, fresh = 0;
};
SetCounts counts_of(const tenancy::ServiceRollout& how, const RolloutFacts& facts);

RolloutStep next_step(const tenancy::ServiceRollout& how, Duration target, std::uint32_t percentile,
                      const RolloutFacts& facts);

// The part of the requests with which a fresh set begins.
std::uint32_t first_part(const tenancy::ServiceRollout& how);

}  // namespace gantry::scale
