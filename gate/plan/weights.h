// Weights of replicas by their response times, for services that are balanced by latency; pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "gate/plan/samples.h"

namespace gantry::gate {

inline constexpr std::uint32_t kLeastWeight = 8;  // a slow replica is still tried now and then

// The weights of the replicas of one version: the fastest has kFullWeight, one that takes twice the
// time half of it. From one look to the next a weight changes by a factor of two at most, and not
// at all for less than a tenth. A replica without an answer in the last seconds goes towards the
// full weight, because nobody knows any more how slow it is.
std::map<std::string, std::uint32_t> weights_of(
    const std::map<std::string, std::uint32_t>& now_have,
    const std::map<std::string, ReplicaTimes>& times, Instant now);

}  // namespace gantry::gate
