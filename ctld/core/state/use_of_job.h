// What a job counts for the limits of use of QOS and associations (use_state.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/fields.h"

namespace gantry::core {

// What a placed job counts, as it was when it was placed.
struct UseOfJob {
  std::map<std::string, std::int64_t> tres;    // by Slurm's name, with billing
  std::int64_t factor = 1'000'000;             // usage factor of its QOS, in millionths
  std::uint32_t qos = 0;                       // index of its priority class
  std::optional<std::uint32_t> partition_qos;  // likewise for its partition
  friend bool operator==(const UseOfJob&, const UseOfJob&) = default;
  GANTRY_FIELDS(FIELD(1, tres), FIELD(2, factor), FIELD(3, qos), FIELD(4, partition_qos))
};

}  // namespace gantry::core
