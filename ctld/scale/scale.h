// How many replicas a service needs: a pure function of its document and of what gates saw.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "common/money/money.h"
#include "common/tenancy/tenancy_service.h"
#include "common/time/time.h"
#include "ctld/scale/load.h"

namespace gantry::scale {

struct ScaleFacts {
  Instant now{};
  std::int64_t local_minute = 0;  // minutes of the cluster's local time since 1970
  std::uint32_t waiting = 0;      // requests in gates now that no replica has taken
  Duration service_time{};        // the mean in a replica, without waiting in a gate; 0 = unknown
  Duration start_time{};          // from the decision for a replica until it is ready; 0 = unknown
  std::uint32_t wanted = 0;       // the answer before
  std::uint32_t shape = 0;        // the same
  std::uint32_t on_one_node = 0;  // the most of its replicas that share a node
  std::optional<Money> cost;      // of one replica for an hour; unset: there are no prices
};

// What the function has to know of its earlier answers.
struct ScaleMemory {
  std::deque<std::pair<Instant, std::uint32_t>> needs;  // falling; of the last `down_after`
  std::optional<Instant> too_slow;  // since when one replica alone does not keep the promise
};

struct ScaleAnswer {
  std::uint32_t replicas = 0;
  std::uint32_t shape = 0;  // of the ladder of shapes
  std::string reason;       // a sentence with the numbers that led to it
};

ScaleAnswer scale(const tenancy::Service& service, const ServiceLoad& load, const ScaleFacts& facts,
                  ScaleMemory& memory);

// Rates that are surely there: of several spans, the greatest that chance alone does not explain.
// A short span shows a spike at once and is noisy, a long one is late and calm.
double sure_rate(const ServiceLoad& load, Instant now);

}  // namespace gantry::scale
